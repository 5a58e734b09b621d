//! Arguments of a call, whatever the language.

use crate::call::{Call, Count, Language, NONE};
use crate::library::{self, Library, Status};

/// Arguments of a call of MPI as machine words.
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    pub(crate) call: &'a Call,
    pub(crate) language: Language,
    pub(crate) words: &'a mut [usize],
    pub(crate) library: &'static Library,
}

impl Arguments<'_> {
    pub(crate) const fn has(&self, at: u8) -> bool {
        at != NONE
    }

    pub(crate) fn word(&self, at: u8) -> usize {
        self.words.get(usize::from(at)).copied().unwrap_or(0)
    }

    /// An integer that is passed to MPI.
    #[allow(clippy::cast_possible_truncation, reason = "the low half of the register is the int")]
    pub(crate) fn int(&self, at: u8) -> i32 {
        match self.language {
            Language::C => (self.word(at) as u32).cast_signed(),
            _ => self.result(at),
        }
    }

    /// An integer that MPI returned; 0 without the argument.
    pub(crate) fn result(&self, at: u8) -> i32 {
        self.ints(at, 1).first().copied().unwrap_or(0)
    }

    /// A count of elements; 0 if it is negative.
    pub(crate) fn count(&self, at: u8) -> u64 {
        match self.call.count {
            Count::Int => u64::try_from(self.int(at)).unwrap_or(0),
            Count::Large => u64::try_from(self.word(at).cast_signed()).unwrap_or(0),
        }
    }

    /// Elements of a list of `length` counts.
    pub(crate) fn counts(&self, at: u8, length: usize) -> impl Iterator<Item = u64> {
        let words = match self.call.count {
            Count::Int => 1,
            Count::Large => 2,
        };
        self.ints(at, words * length).chunks(words).map(|halves| match halves {
            [low, high] => {
                let whole = i64::from(*high) << 32 | i64::from(low.cast_unsigned());
                u64::try_from(whole).unwrap_or(0)
            }
            count => u64::try_from(count.first().copied().unwrap_or(0)).unwrap_or(0),
        })
    }

    /// A list of integers, or a result of one.
    pub(crate) fn ints(&self, at: u8, count: usize) -> &[i32] {
        words(self.word(at), count)
    }

    /// Indices from 0, of those that Fortran counts from 1, or where it is wrong from 0.
    pub(crate) fn indices(&self, at: u8, count: usize) -> impl Iterator<Item = Option<usize>> {
        let given = self.ints(at, count);
        let first = match self.language {
            Language::C => 0,
            Language::Fortran => 1,
            Language::Modern | Language::Descriptors => self.library.first_index(),
        };
        given.iter().map(move |index| usize::try_from(index.checked_sub(first)?).ok())
    }

    /// A communicator.
    pub(crate) fn comm(&self, at: u8) -> usize {
        match self.language {
            Language::C => self.handle(self.word(at)),
            _ => library::comm_of(self.library, self.result(at)),
        }
    }

    /// A communicator that MPI returned, or is about to free.
    pub(crate) fn new_comm(&self, at: u8) -> usize {
        self.stored(at, 0, library::comm_of)
    }

    pub(crate) fn request(&self, at: u8, index: usize) -> usize {
        self.stored(at, index, library::request_of)
    }

    pub(crate) fn message(&self, at: u8) -> usize {
        self.stored(at, 0, library::message_of)
    }

    /// Bytes of `count` elements of a datatype, or of the one at `index` of a list of types.
    pub(crate) fn bytes(&self, count: u64, at: u8, index: Option<usize>) -> u64 {
        // A type need not be valid where nothing is moved.
        if count == 0 {
            return 0;
        }
        let datatype = match (self.language, index) {
            (_, Some(index)) => self.stored(at, index, library::type_of),
            (Language::C, None) => self.handle(self.word(at)),
            _ => library::type_of(self.library, self.result(at)),
        };
        let mut size = 0;
        library::type_size_x(datatype, &mut size);
        count.saturating_mul(u64::try_from(size).unwrap_or(0))
    }

    /// True if a buffer is `MPI_IN_PLACE`.
    pub(crate) fn is_in_place(&self, at: u8) -> bool {
        let [c, fortran, descriptor] = self.library.in_place;
        let buffer = self.word(at);
        self.has(at)
            && match self.language {
                Language::C => buffer == c,
                Language::Fortran | Language::Modern => buffer == fortran,
                // A descriptor begins with the address.
                Language::Descriptors => stored_word(buffer) == descriptor,
            }
    }

    /// True if the caller ignores statuses.
    pub(crate) fn ignores(&self, at: u8) -> bool {
        self.has(at) && self.library.ignored.contains(&self.word(at))
    }

    /// Status at `index` of a list.
    pub(crate) fn status(&self, at: u8, index: usize) -> Status {
        let length = self.library.status_words();
        let start = self.word(at).wrapping_add(index * length * size_of::<i32>());
        self.library.status(words(start, length))
    }

    const fn handle(&self, word: usize) -> usize {
        if self.library.is_mpich { word & 0xffff_ffff } else { word }
    }

    /// Handle at `index` of a list in memory.
    fn stored(&self, at: u8, index: usize, convert: fn(&Library, i32) -> usize) -> usize {
        if self.language == Language::C && !self.library.is_mpich {
            return stored_word(self.word(at).wrapping_add(index * size_of::<usize>()));
        }
        let start = self.word(at).wrapping_add(index * size_of::<i32>());
        let handle = words(start, 1).first().copied().unwrap_or(0);
        convert(self.library, handle)
    }
}

/// The word at an address, in halves, which need no alignment of 8.
fn stored_word(address: usize) -> usize {
    let halves = words(address, 2);
    let half = |at: usize| halves.get(at).map_or(0, |half| half.cast_unsigned() as usize);
    half(0) | half(1) << 32
}

/// Memory of the caller.
fn words<'a>(address: usize, count: usize) -> &'a [i32] {
    if address == 0 || count == 0 {
        return &[];
    }
    // SAFETY: the table of calls says that MPI reads or has written that many integers there, of
    // arguments that the caller passed; no one writes them before the call returns to the caller.
    unsafe { std::slice::from_raw_parts(address as *const i32, count) }
}
