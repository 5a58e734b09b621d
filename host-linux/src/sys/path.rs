//! A socket option that no safe interface offers.

use nix::{getsockopt_impl, libc, sockopt_impl};

sockopt_impl!(
    /// Bytes of the longest packet that the way to a connected socket's peer is known
    /// to take.
    Ipv6Mtu,
    GetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_MTU,
    libc::c_int
);
