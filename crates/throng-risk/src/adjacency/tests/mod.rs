mod golden;
mod inference;
mod joint_count_tests;
mod properties;
mod reference_adjacency;
