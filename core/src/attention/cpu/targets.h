#ifndef AAH_SRC_ATTENTION_CPU_TARGETS_H_
#define AAH_SRC_ATTENTION_CPU_TARGETS_H_

// Which instruction sets the kernels are compiled for. Include before any Highway header, in every
// file that compiles kernels or asks about them: the answers must agree.
//
// x86: AVX2, AVX-512 and a portable fallback (the older SSE levels would only lengthen the build;
// the later AVX-512 level adds nothing that fp32 uses). Arm: NEON, and not SVE, whose vectors have
// no size and so cannot live in arrays of accumulators.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#endif  // AAH_SRC_ATTENTION_CPU_TARGETS_H_
