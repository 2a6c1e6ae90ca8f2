//! What the kinds of name have in common as types: shown, read and serialised through their one spelling.

/// `Debug` and serde for a type that has `Display` and `FromStr`.
macro_rules! through_text {
    ($name:ident) => {
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <::std::borrow::Cow<'de, str> as ::serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }
    };
}

/// Everything for a type around one `String`; the function checks a text and answers with its one spelling.
macro_rules! of_string {
    ($name:ident, $read:expr) => {
        impl $name {
            /// The one spelling.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::admission::names::BadName;

            fn from_str(text: &str) -> Result<$name, $crate::admission::names::BadName> {
                let read: fn(&str) -> Result<String, $crate::admission::names::BadName> = $read;
                read(text).map($name)
            }
        }

        $crate::admission::names::text_type::through_text!($name);
    };
}

/// `Display` and `Debug` for a type around one number with `get`.
macro_rules! shown_as_number {
    ($name:ident) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{}", self.get())
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.get())
            }
        }
    };
}

pub(super) use {of_string, shown_as_number, through_text};
