pub mod lent;
