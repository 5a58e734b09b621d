//! placeholder-module
