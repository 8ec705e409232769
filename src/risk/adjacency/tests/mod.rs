mod golden;
mod inference;
mod properties;
mod twin;
