//! Compression and encoding of input files.

/// Compression or encoding that must be undone before a file can be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this is {name}: '{convert} FILE > PLAIN' converts it")]
pub(crate) struct Coding {
    name: &'static str,
    convert: &'static str,
}

impl Coding {
    /// Compression or encoding, recognised by the first bytes of a file.
    pub(crate) const fn of(bytes: &[u8]) -> Option<Self> {
        let (name, convert) = match bytes {
            [0x1f, 0x8b, ..] => ("gzip", "gzip -dc"),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => ("bzip2", "bzip2 -dc"),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => ("xz", "xz -dc"),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => ("Zstandard", "zstd -dc"),
            [b'P', b'K', 3, 4, ..] => ("zip", "unzip -p"),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => ("UTF-16", "iconv -f UTF-16 -t UTF-8"),
            [b' '..=b'~', 0, b' '..=b'~', 0, ..] => ("UTF-16", "iconv -f UTF-16LE -t UTF-8"),
            [0, b' '..=b'~', 0, b' '..=b'~', ..] => ("UTF-16", "iconv -f UTF-16BE -t UTF-8"),
            _ => return None,
        };
        Some(Self { name, convert })
    }
}
