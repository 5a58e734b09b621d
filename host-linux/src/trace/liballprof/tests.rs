//! Lines as liballprof writes them.
