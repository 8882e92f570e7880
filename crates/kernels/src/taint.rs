//! Marks on secrets, for a tool that follows them: valgrind's memcheck.
//!
//! Memcheck follows every bit through memory and registers and says whether it is *undefined*. It
//! reports a conditional jump with an undefined condition, and a memory access with an undefined
//! address. So if a secret is marked as undefined, memcheck reports each branch and each address
//! that depends on it, however indirectly. (The idea is Adam Langley's *ctgrind*, of 2010.)
//! `scripts/check-constant-time.sh` runs the client's code that way.
//!
//! A mark is a *client request*: a sequence of instructions that does nothing on a processor and
//! that valgrind recognises. **Without the feature `taint`, which no shipped program has, there are
//! no marks**, and [`declassify`] and [`admit`] do nothing.
//!
//! # Two ways to end a mark
//!
//! Production code ends a mark only in two cases, and each place says why:
//!
//! - [`declassify`]: the value follows from a secret, but is public. Either it is the same for
//!   every secret (a check that always passes), or it is about to be sent.
//! - [`admit`]: the value is secret, and a branch or an address does depend on it. An attacker who
//!   shares the processor's caches with the client can see it, and it affects timing. So the work
//!   with this value must lie in the part of a lookup whose duration is public. Search for this
//!   word to find all such places.
//!
//! A value that is read at an admitted address is as secret as the address. Memcheck does not know
//! that: it follows values, and treats a value from a list of public numbers as public. So such a
//! value is marked again, with [`conceal`].

#[cfg(feature = "taint")]
pub use requests::{errors, is_marked, is_watched, mark_public, mark_secret};

/// The same value, which follows from secrets but is public: see the [module](self).
#[inline(always)]
pub fn declassify<T: Copy>(value: T) -> T {
    without_mark(value)
}

/// The same value, a secret on which a branch or an address depends, as is known: see the
/// [module](self).
#[inline(always)]
pub fn admit<T: Copy>(value: T) -> T {
    without_mark(value)
}

/// The same value, which was read at a secret address: see the [module](self).
#[inline(always)]
pub fn conceal<T: Copy>(value: T) -> T {
    #[cfg(feature = "taint")]
    let value = {
        let mut value = value;
        mark_secret(&mut value);
        value
    };
    value
}

#[cfg(not(feature = "taint"))]
#[inline(always)]
fn without_mark<T>(value: T) -> T {
    value
}

#[cfg(feature = "taint")]
#[inline(always)]
fn without_mark<T>(mut value: T) -> T {
    mark_public(&mut value);
    value
}

#[cfg(feature = "taint")]
mod requests {
    // Values of `Vg_ClientRequest` and `Vg_MemCheckClientRequest` in valgrind's public headers.
    const RUNNING_ON_VALGRIND: usize = 0x1001;
    const COUNT_ERRORS: usize = 0x1201;
    const MAKE_MEM_UNDEFINED: usize = 0x4d43_0001;
    const MAKE_MEM_DEFINED: usize = 0x4d43_0002;
    const GET_VBITS: usize = 0x4d43_0008;

    /// Whether memcheck, or another of valgrind's tools, is watching.
    pub fn is_watched() -> bool {
        request(RUNNING_ON_VALGRIND, [0; 3]) != 0
    }

    /// How many branches and addresses memcheck has reported so far.
    pub fn errors() -> usize {
        request(COUNT_ERRORS, [0; 3])
    }

    /// Marks the bytes of a value, not what it points to, as secret.
    pub fn mark_secret<T: ?Sized>(value: &mut T) {
        request(MAKE_MEM_UNDEFINED, [address_of(value), size_of_val(value), 0]);
    }

    /// Ends the marks of the bytes of a value.
    pub fn mark_public<T: ?Sized>(value: &mut T) {
        request(MAKE_MEM_DEFINED, [address_of(value), size_of_val(value), 0]);
    }

    /// Whether any of the bytes follows from marked bytes.
    pub fn is_marked(bytes: &mut [u8]) -> bool {
        bytes.chunks_mut(64).any(|bytes| {
            let mut marks = [0u8; 64];
            let len = bytes.len();
            request(GET_VBITS, [address_of(bytes), address_of(&mut marks), len]);
            marks != [0; 64]
        })
    }

    /// Exposes the address, so that the compiler lets the block below change the memory there.
    fn address_of<T: ?Sized>(value: &mut T) -> usize {
        (&raw mut *value).cast::<()>().expose_provenance()
    }

    /// Passes a request to valgrind. Returns 0 without valgrind, or on another architecture.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn request(code: usize, [first, second, third]: [usize; 3]) -> usize {
        let arguments = [code, first, second, third, 0, 0];
        let mut result = 0usize;
        // SAFETY: four rotations by 128 bits in all leave RDI as it was, and the exchange of RBX
        // with itself changes nothing, so on a processor this has no effect but on the flags, which
        // the block does not promise to keep. Valgrind reads the six words of `arguments`, which
        // outlive the block, and puts its reply into RDX, which the block says. What it changes is
        // what it knows of the bytes at an address; and `GET_VBITS` writes as many bytes to its
        // second address as it looks at. All these bytes are those of exclusive references that the
        // functions above hold, of `marks` no more than it has, and the compiler takes them to have
        // changed, since the block does not say `nomem`.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") arguments.as_ptr(),
                inout("rdx") result,
                options(nostack),
            );
        }
        result
    }

    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    fn request(_code: usize, _arguments: [usize; 3]) -> usize {
        0
    }
}
