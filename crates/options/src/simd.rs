//! Vectors of doubles: AVX-512, AVX2 with FMA, and a portable twin, behind one trait, so that a kernel is
//! written once.
//!
//! A token ([`Avx512`], [`Avx2`]) is proof that the processor has the instructions: it is made by `detect`
//! only, and every operation takes it. AVX-512 and AVX2 do the same operations in the same order and give the
//! same bits. The portable twin rounds after each multiplication, where they have fused ones: it differs in
//! the last digits.
//!
//! This is the crate's one file with unsafe code: calls of instructions behind their token, loads and stores
//! through references to arrays, and an `asm!` without an instruction that keeps an order. Why not left to
//! the compiler: `docs/adr/0007-vectors-in-option-pricing.md`.
#![allow(unsafe_code)]

/// Doubles of a vector, in as many registers as that takes.
pub(crate) const LANES: usize = 8;

/// The operations that kernels are made of. `V` is a vector of [`LANES`] doubles, `M` a choice per lane.
pub(crate) trait Simd: Copy {
    type V: Copy;
    type M: Copy;
    fn splat(self, x: f64) -> Self::V;
    fn load(self, from: &[f64; LANES]) -> Self::V;
    fn store(self, v: Self::V, to: &mut [f64; LANES]);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// The larger one; `b` where either is no number.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a·b + c`.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    fn abs(self, v: Self::V) -> Self::V;
    /// To the nearest integer, the even one at the middle; |v| < 2^51.
    fn round(self, v: Self::V) -> Self::V;
    /// `v·2^n` for integers n from −1022 to 1023 and results that are normal numbers.
    fn scale(self, v: Self::V, n: Self::V) -> Self::V;
    fn less(self, a: Self::V, b: Self::V) -> Self::M;
    /// `a` where chosen, else `b`.
    fn select(self, m: Self::M, a: Self::V, b: Self::V) -> Self::V;
    /// The same value, worked out here and not later: a step of one of several chains of dependent
    /// operations. Chains written step by step, side by side, stay so, where a compiler would write one
    /// behind the other, more than a processor looks ahead.
    #[inline(always)]
    fn step(self, v: Self::V) -> Self::V {
        v
    }
    /// Runs the kernel in a function that is compiled for these instructions.
    fn run<K: Kernel>(self, kernel: K);
}

/// Work that is written over [`Simd`]; `run` is `#[inline(always)]` in implementations.
pub(crate) trait Kernel {
    fn run<S: Simd>(self, s: S);
}

/// 2^52 + 2^51: adding it leaves the integer part in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Lanes without a vector instruction being named.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Portable {
    #[inline(always)]
    fn map2(a: [f64; LANES], b: [f64; LANES], f: impl Fn(f64, f64) -> f64) -> [f64; LANES] {
        core::array::from_fn(|i| f(a[i], b[i]))
    }
}

impl Simd for Portable {
    type V = [f64; LANES];
    type M = [bool; LANES];
    #[inline(always)]
    fn splat(self, x: f64) -> [f64; LANES] {
        [x; LANES]
    }
    #[inline(always)]
    fn load(self, from: &[f64; LANES]) -> [f64; LANES] {
        *from
    }
    #[inline(always)]
    fn store(self, v: [f64; LANES], to: &mut [f64; LANES]) {
        *to = v;
    }
    #[inline(always)]
    fn add(self, a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        Self::map2(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        Self::map2(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        Self::map2(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        Self::map2(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn max(self, a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        Self::map2(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn mul_add(self, a: [f64; LANES], b: [f64; LANES], c: [f64; LANES]) -> [f64; LANES] {
        self.add(self.mul(a, b), c)
    }
    #[inline(always)]
    fn abs(self, v: [f64; LANES]) -> [f64; LANES] {
        v.map(f64::abs)
    }
    #[inline(always)]
    fn round(self, v: [f64; LANES]) -> [f64; LANES] {
        v.map(|v| (v + MAGIC) - MAGIC)
    }
    #[inline(always)]
    fn scale(self, v: [f64; LANES], n: [f64; LANES]) -> [f64; LANES] {
        Self::map2(v, n, |v, n| {
            v * f64::from_bits((n + (MAGIC + 1023.0)).to_bits() << 52)
        })
    }
    #[inline(always)]
    fn less(self, a: [f64; LANES], b: [f64; LANES]) -> [bool; LANES] {
        core::array::from_fn(|i| a[i] < b[i])
    }
    #[inline(always)]
    fn select(self, m: [bool; LANES], a: [f64; LANES], b: [f64; LANES]) -> [f64; LANES] {
        core::array::from_fn(|i| if m[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        kernel.run(self);
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Kernel, LANES, MAGIC, Simd};
    use core::arch::asm;
    use core::arch::x86_64::*;

    cpufeatures::new!(has_avx512, "avx512f");
    cpufeatures::new!(has_avx2, "avx2", "fma");

    /// Proof that the processor and its operating system have AVX-512F.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(());

    /// Proof that they have AVX2 and FMA.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx2(());

    impl Avx512 {
        /// Asks the processor.
        pub(crate) fn detect() -> Option<Self> {
            has_avx512::get().then_some(Self(()))
        }
    }

    impl Avx2 {
        /// Asks the processor.
        pub(crate) fn detect() -> Option<Self> {
            has_avx2::get().then_some(Self(()))
        }
    }

    /// Functions of a token that are one expression of instructions each.
    macro_rules! instructions {
        ($(fn $name:ident($($arg:ident: $kind:ty),*) -> $out:ty = $body:expr;)*) => {$(
            #[inline(always)]
            fn $name(self, $($arg: $kind),*) -> $out {
                // SAFETY: these instructions ask for nothing but a processor that has them; `self` is made by
                // `detect` only, which says that it does.
                unsafe { $body }
            }
        )*};
    }

    /// The same for functions of two registers at a time, each by itself.
    macro_rules! pairs {
        ($(fn $name:ident($($arg:ident),*) = $body:expr;)*) => {$(
            #[inline(always)]
            fn $name(self, $($arg: [__m256d; 2]),*) -> [__m256d; 2] {
                // SAFETY: these instructions ask for nothing but a processor that has them; `self` is made by
                // `detect` only, which says that it does.
                unsafe {
                    [
                        { $(let $arg = $arg[0];)* $body },
                        { $(let $arg = $arg[1];)* $body },
                    ]
                }
            }
        )*};
    }

    impl Simd for Avx512 {
        type V = __m512d;
        type M = __mmask8;
        instructions! {
            fn splat(x: f64) -> __m512d = _mm512_set1_pd(x);
            fn add(a: __m512d, b: __m512d) -> __m512d = _mm512_add_pd(a, b);
            fn sub(a: __m512d, b: __m512d) -> __m512d = _mm512_sub_pd(a, b);
            fn mul(a: __m512d, b: __m512d) -> __m512d = _mm512_mul_pd(a, b);
            fn div(a: __m512d, b: __m512d) -> __m512d = _mm512_div_pd(a, b);
            fn max(a: __m512d, b: __m512d) -> __m512d = _mm512_max_pd(a, b);
            fn mul_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d = _mm512_fmadd_pd(a, b, c);
            fn abs(v: __m512d) -> __m512d = _mm512_abs_pd(v);
            fn round(v: __m512d) -> __m512d = _mm512_roundscale_pd::<0>(v);
            fn scale(v: __m512d, n: __m512d) -> __m512d = _mm512_scalef_pd(v, n);
            fn less(a: __m512d, b: __m512d) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b);
            fn select(m: __mmask8, a: __m512d, b: __m512d) -> __m512d = _mm512_mask_blend_pd(m, b, a);
        }
        #[inline(always)]
        fn load(self, from: &[f64; LANES]) -> __m512d {
            // SAFETY: 64 bytes are read at the address of a reference to 8 doubles, of any alignment; and
            // `self` is proof of AVX-512F.
            unsafe { _mm512_loadu_pd(from.as_ptr()) }
        }
        #[inline(always)]
        fn store(self, v: __m512d, to: &mut [f64; LANES]) {
            // SAFETY: 64 bytes are written at the address of a unique reference to 8 doubles, of any
            // alignment; and `self` is proof of AVX-512F.
            unsafe { _mm512_storeu_pd(to.as_mut_ptr(), v) }
        }
        #[inline(always)]
        fn run<K: Kernel>(self, kernel: K) {
            #[target_feature(enable = "avx512f")]
            fn compiled<K: Kernel>(s: Avx512, kernel: K) {
                kernel.run(s);
            }
            // SAFETY: the function asks for nothing but AVX-512F, of which `self` is the proof.
            unsafe { compiled(self, kernel) }
        }
    }

    /// Two registers at a time, so that there is as much to do as the processor can begin while an operation
    /// lasts.
    impl Simd for Avx2 {
        type V = [__m256d; 2];
        type M = [__m256d; 2];
        pairs! {
            fn add(a, b) = _mm256_add_pd(a, b);
            fn sub(a, b) = _mm256_sub_pd(a, b);
            fn mul(a, b) = _mm256_mul_pd(a, b);
            fn div(a, b) = _mm256_div_pd(a, b);
            fn max(a, b) = _mm256_max_pd(a, b);
            fn mul_add(a, b, c) = _mm256_fmadd_pd(a, b, c);
            fn abs(v) = _mm256_andnot_pd(_mm256_set1_pd(-0.0), v);
            fn round(v) = _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v);
            // n + 1023 in the low bits of a double, moved to the place of the exponent.
            fn scale(v, n) = {
                let biased = _mm256_castpd_si256(_mm256_add_pd(n, _mm256_set1_pd(MAGIC + 1023.0)));
                _mm256_mul_pd(v, _mm256_castsi256_pd(_mm256_slli_epi64::<52>(biased)))
            };
            fn less(a, b) = _mm256_cmp_pd::<_CMP_LT_OQ>(a, b);
            fn select(m, a, b) = _mm256_blendv_pd(b, a, m);
        }
        instructions! {
            fn splat(x: f64) -> [__m256d; 2] = [_mm256_set1_pd(x); 2];
        }
        #[inline(always)]
        fn load(self, from: &[f64; LANES]) -> [__m256d; 2] {
            // SAFETY: 64 bytes are read, in halves, at the address of a reference to 8 doubles, of any
            // alignment; and `self` is proof of AVX2.
            unsafe { [0, 4].map(|half| _mm256_loadu_pd(from.as_ptr().add(half))) }
        }
        #[inline(always)]
        fn store(self, v: [__m256d; 2], to: &mut [f64; LANES]) {
            // SAFETY: 64 bytes are written, in halves, at the address of a unique reference to 8 doubles, of
            // any alignment; and `self` is proof of AVX2.
            unsafe {
                _mm256_storeu_pd(to.as_mut_ptr(), v[0]);
                _mm256_storeu_pd(to.as_mut_ptr().add(4), v[1]);
            }
        }
        #[inline(always)]
        fn step(self, v: [__m256d; 2]) -> [__m256d; 2] {
            #[target_feature(enable = "avx2,fma")]
            #[inline]
            fn in_registers([mut a, mut b]: [__m256d; 2]) -> [__m256d; 2] {
                // SAFETY: there is no instruction in it: both values are in registers here, and such places
                // keep their order.
                unsafe {
                    asm!(
                        "/* {0} {1} */",
                        inout(ymm_reg) a,
                        inout(ymm_reg) b,
                        options(nomem, nostack, preserves_flags),
                    );
                }
                [a, b]
            }
            // SAFETY: the function asks for nothing but AVX2 and FMA, of which `self` is the proof.
            unsafe { in_registers(v) }
        }
        #[inline(always)]
        fn run<K: Kernel>(self, kernel: K) {
            #[target_feature(enable = "avx2,fma")]
            fn compiled<K: Kernel>(s: Avx2, kernel: K) {
                kernel.run(s);
            }
            // SAFETY: the function asks for nothing but AVX2 and FMA, of which `self` is the proof.
            unsafe { compiled(self, kernel) }
        }
    }
}
