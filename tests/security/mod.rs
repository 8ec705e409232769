//! Authentication and authorization with a real broker: a temporary certificate authority, SCRAM users, an identity
//! provider, and an authorizer that denies by default.

mod admin;
mod certificates;
mod door;
mod example;
mod provider;
mod proxies;
mod refusals;
mod rights;
mod running;
mod scene;
mod tokens;
