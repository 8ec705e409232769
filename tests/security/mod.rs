//! Who we are to the brokers, and how we know them: a real broker with a throw-away authority, users of SCRAM, an identity provider
//! that the test starts, and an authorizer that lets nobody do anything that was not granted.

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
