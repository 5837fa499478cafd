//! Vectors of doubles: AVX-512, AVX2 with FMA, and a portable twin, behind one trait, so that a kernel is written once.
//!
//! A token ([`Avx512`], [`Avx2`]) is proof that the processor has the instructions: it is made by `detect` only, and every operation
//! takes it. AVX-512 and AVX2 do the same operations in the same order and give the same bits. The portable twin rounds after each
//! multiplication, where they have fused ones: it differs in the last digits.
//!
//! This is the crate's one file with unsafe code: calls of instructions behind their token, and loads and stores through
//! references to arrays. Why not left to the compiler: `docs/adr/0007-vectors-in-option-pricing.md`.
#![allow(unsafe_code)]

/// The operations that kernels are made of. `V` is a vector of [`Simd::LANES`] doubles, `M` a choice per lane.
pub(crate) trait Simd: Copy {
    type V: Copy;
    type M: Copy;
    const LANES: usize;
    fn splat(self, x: f64) -> Self::V;
    /// The first lanes of a slice that is long enough; panics on a shorter one.
    fn load(self, from: &[f64]) -> Self::V;
    /// Into the first lanes of a slice that is long enough; panics on a shorter one.
    fn store(self, v: Self::V, to: &mut [f64]);
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
    /// Runs the kernel in a function that is compiled for these instructions.
    fn run<K: Kernel>(self, kernel: K);
}

/// Work that is written over [`Simd`]; `run` is `#[inline(always)]` in implementations.
pub(crate) trait Kernel {
    fn run<S: Simd>(self, s: S);
}

/// 2^52 + 2^51: adding it leaves the integer part in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Four lanes without a vector instruction being named.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Portable {
    #[inline(always)]
    fn map2(a: [f64; 4], b: [f64; 4], f: impl Fn(f64, f64) -> f64) -> [f64; 4] {
        [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
    }
}

impl Simd for Portable {
    type V = [f64; 4];
    type M = [bool; 4];
    const LANES: usize = 4;
    #[inline(always)]
    fn splat(self, x: f64) -> [f64; 4] {
        [x; 4]
    }
    #[inline(always)]
    fn load(self, from: &[f64]) -> [f64; 4] {
        *from.first_chunk().expect("the slice has LANES numbers")
    }
    #[inline(always)]
    fn store(self, v: [f64; 4], to: &mut [f64]) {
        *to.first_chunk_mut().expect("the slice has LANES numbers") = v;
    }
    #[inline(always)]
    fn add(self, a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        Self::map2(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        Self::map2(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        Self::map2(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        Self::map2(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn max(self, a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        Self::map2(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn mul_add(self, a: [f64; 4], b: [f64; 4], c: [f64; 4]) -> [f64; 4] {
        self.add(self.mul(a, b), c)
    }
    #[inline(always)]
    fn abs(self, v: [f64; 4]) -> [f64; 4] {
        v.map(f64::abs)
    }
    #[inline(always)]
    fn round(self, v: [f64; 4]) -> [f64; 4] {
        v.map(|v| (v + MAGIC) - MAGIC)
    }
    #[inline(always)]
    fn scale(self, v: [f64; 4], n: [f64; 4]) -> [f64; 4] {
        Self::map2(v, n, |v, n| {
            v * f64::from_bits((n + (MAGIC + 1023.0)).to_bits() << 52)
        })
    }
    #[inline(always)]
    fn less(self, a: [f64; 4], b: [f64; 4]) -> [bool; 4] {
        [a[0] < b[0], a[1] < b[1], a[2] < b[2], a[3] < b[3]]
    }
    #[inline(always)]
    fn select(self, m: [bool; 4], a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        let pick = |i: usize| if m[i] { a[i] } else { b[i] };
        [pick(0), pick(1), pick(2), pick(3)]
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
    use super::{Kernel, MAGIC, Simd};
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
                // SAFETY: these instructions ask for nothing but a processor that has them; `self` is made by `detect` only,
                // which says that it does.
                unsafe { $body }
            }
        )*};
    }

    impl Simd for Avx512 {
        type V = __m512d;
        type M = __mmask8;
        const LANES: usize = 8;
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
        fn load(self, from: &[f64]) -> __m512d {
            let chunk: &[f64; 8] = from.first_chunk().expect("the slice has LANES numbers");
            // SAFETY: 64 bytes are read at the address of a reference to 8 doubles, of any alignment; and `self` is proof
            // of AVX-512F.
            unsafe { _mm512_loadu_pd(chunk.as_ptr()) }
        }
        #[inline(always)]
        fn store(self, v: __m512d, to: &mut [f64]) {
            let chunk: &mut [f64; 8] = to.first_chunk_mut().expect("the slice has LANES numbers");
            // SAFETY: 64 bytes are written at the address of a unique reference to 8 doubles, of any alignment; and `self` is
            // proof of AVX-512F.
            unsafe { _mm512_storeu_pd(chunk.as_mut_ptr(), v) }
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

    impl Simd for Avx2 {
        type V = __m256d;
        type M = __m256d;
        const LANES: usize = 4;
        instructions! {
            fn splat(x: f64) -> __m256d = _mm256_set1_pd(x);
            fn add(a: __m256d, b: __m256d) -> __m256d = _mm256_add_pd(a, b);
            fn sub(a: __m256d, b: __m256d) -> __m256d = _mm256_sub_pd(a, b);
            fn mul(a: __m256d, b: __m256d) -> __m256d = _mm256_mul_pd(a, b);
            fn div(a: __m256d, b: __m256d) -> __m256d = _mm256_div_pd(a, b);
            fn max(a: __m256d, b: __m256d) -> __m256d = _mm256_max_pd(a, b);
            fn mul_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d = _mm256_fmadd_pd(a, b, c);
            fn abs(v: __m256d) -> __m256d = _mm256_andnot_pd(_mm256_set1_pd(-0.0), v);
            fn round(v: __m256d) -> __m256d = _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v);
            // n + 1023 in the low bits of a double, moved to the place of the exponent.
            fn scale(v: __m256d, n: __m256d) -> __m256d = {
                let biased = _mm256_castpd_si256(_mm256_add_pd(n, _mm256_set1_pd(MAGIC + 1023.0)));
                _mm256_mul_pd(v, _mm256_castsi256_pd(_mm256_slli_epi64::<52>(biased)))
            };
            fn less(a: __m256d, b: __m256d) -> __m256d = _mm256_cmp_pd::<_CMP_LT_OQ>(a, b);
            fn select(m: __m256d, a: __m256d, b: __m256d) -> __m256d = _mm256_blendv_pd(b, a, m);
        }
        #[inline(always)]
        fn load(self, from: &[f64]) -> __m256d {
            let chunk: &[f64; 4] = from.first_chunk().expect("the slice has LANES numbers");
            // SAFETY: 32 bytes are read at the address of a reference to 4 doubles, of any alignment; and `self` is proof of AVX2.
            unsafe { _mm256_loadu_pd(chunk.as_ptr()) }
        }
        #[inline(always)]
        fn store(self, v: __m256d, to: &mut [f64]) {
            let chunk: &mut [f64; 4] = to.first_chunk_mut().expect("the slice has LANES numbers");
            // SAFETY: 32 bytes are written at the address of a unique reference to 4 doubles, of any alignment; and `self` is
            // proof of AVX2.
            unsafe { _mm256_storeu_pd(chunk.as_mut_ptr(), v) }
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
