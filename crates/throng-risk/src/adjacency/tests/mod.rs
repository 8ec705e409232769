mod counted;
mod golden;
mod inference;
mod properties;
mod twin;
