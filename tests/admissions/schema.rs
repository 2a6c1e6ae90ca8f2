//! What the tables hold by themselves: written around the code, each is refused.
