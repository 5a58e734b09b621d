//! loggap on Linux: clocks, links, drivers and exporters around
//! [`loggap_core`].
