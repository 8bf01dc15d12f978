//! Writing, reading and the loop against a scripted API server.

mod applying;
mod leading;
mod reading;
mod turning;
