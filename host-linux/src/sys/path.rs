//! A socket option for which no safe wrapper exists.

use nix::{getsockopt_impl, libc, sockopt_impl};

sockopt_impl!(
    /// Path MTU to the peer of a connected socket, in bytes.
    Ipv6Mtu,
    GetOnly,
    libc::IPPROTO_IPV6,
    libc::IPV6_MTU,
    libc::c_int
);
