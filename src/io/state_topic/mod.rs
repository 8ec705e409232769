//! The topic that the states of instances follow them in: one partition an instance, one record a value, and nothing in clear but the
//! names of group and instance.
//!
//! | room | what it holds |
//! |---|---|
//! | [`spelling`] | a value as records, and back |
//! | [`reading`] | all that the topic has of an instance |

pub mod reading;
pub mod spelling;

pub use reading::{Kept, StateTopic, StateTopicError};
pub use spelling::Spelling;
