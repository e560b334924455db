#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "aah/error.h"
#include "aah/float16.h"
#include "aah/instruction_set.h"
#include "aah/scratch.h"

namespace aah {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Float16, EveryValueSurvivesTheWayToFloatAndBack) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = ToFloat(Float16{half});
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(ToFloat(ToFloat16(wide))));
    } else {
      ASSERT_EQ(ToFloat16(wide).bits, half);
    }
    const float brain = ToFloat(Bfloat16{half});
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(ToFloat(ToBfloat16(brain))));
    } else {
      ASSERT_EQ(ToBfloat16(brain).bits, half);
    }
  }
}

TEST(Float16, KnownValues) {
  EXPECT_EQ(ToFloat(Float16{0x3C00}), 1.0F);
  EXPECT_EQ(ToFloat(Float16{0xC000}), -2.0F);
  EXPECT_EQ(ToFloat(Float16{0x7BFF}), 65504.0F);
  EXPECT_EQ(ToFloat(Float16{0x0001}), 0x1.0p-24F);
  EXPECT_EQ(ToFloat(Float16{0x7C00}), std::numeric_limits<float>::infinity());
  EXPECT_EQ(ToFloat(Bfloat16{0x3F80}), 1.0F);
  EXPECT_EQ(ToFloat16(65520.0F).bits, 0x7C00);
  EXPECT_EQ(ToFloat16(65519.9F).bits, 0x7BFF);
  EXPECT_EQ(ToFloat16(1e30F).bits, 0x7C00);
  EXPECT_EQ(ToBfloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
}

// Between neighbours the nearer is taken, halfway the even one.
TEST(Float16, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const double low = ToFloat(Float16{static_cast<uint16_t>(bits)});
    const double high = ToFloat(Float16{static_cast<uint16_t>(bits + 1)});
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(ToFloat16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 0.0F)).bits, bits);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, 1e9F)).bits, bits + 1);
  }
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const auto middle = std::bit_cast<float>((bits << 16) | 0x8000);
    ASSERT_EQ(ToBfloat16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(ToBfloat16(std::bit_cast<float>((bits << 16) | 0x7FFF)).bits, bits);
    ASSERT_EQ(ToBfloat16(std::bit_cast<float>((bits << 16) | 0x8001)).bits, bits + 1);
  }
}

TEST(Scratch, IsAlignedReusedAndCounted) {
  Scratch::ReleaseUnused();
  const int64_t before = Scratch::BytesInUse();
  const void* first = nullptr;
  {
    const Scratch scratch(1000);
    first = scratch.As<float>();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0U);
    EXPECT_GE(Scratch::BytesInUse() - before, 1000);
    EXPECT_LE(Scratch::BytesInUse() - before, 1250);
    const Scratch second(1000);
    EXPECT_NE(second.As<float>(), first);
  }
  EXPECT_EQ(Scratch::BytesInUse(), before);
  Scratch::ResetHighWater();
  EXPECT_EQ(Scratch::HighWaterBytes(), before);
  {
    const Scratch large(1 << 20);
    EXPECT_NE(large.As<float>(), first);
  }
  EXPECT_GE(Scratch::HighWaterBytes() - before, 1 << 20);
  const void* again = nullptr;
  {
    const Scratch scratch(1 << 20);
    again = scratch.As<void>();
  }
  const Scratch scratch(1 << 20);
  EXPECT_EQ(scratch.As<void>(), again);
}

TEST(Scratch, RefusesTheImpossible) {
  try {
    const Scratch scratch(size_t{1} << 60);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMachine);
    EXPECT_THAT(error.what(), HasSubstr("out of memory"));
  }
  const Scratch small(8);
  EXPECT_NE(small.As<float>(), nullptr);
}

TEST(InstructionSet, CanBeRestrictedToEachAndLifted) {
  const auto names = SupportedInstructionSets();
  ASSERT_FALSE(names.empty());
  for (const auto& name : names) {
    RestrictInstructionSet(name);
    EXPECT_EQ(CurrentInstructionSet(), name);
    EXPECT_EQ(SupportedInstructionSets(), names);
  }
  EXPECT_THAT([] { RestrictInstructionSet("AVX9"); },
              ThrowsMessage<Error>(HasSubstr("unknown instruction set 'AVX9': expected one of ")));
  EXPECT_EQ(CurrentInstructionSet(), names.back());
  RestrictInstructionSet("");
  EXPECT_EQ(CurrentInstructionSet(), names.front());
}

}  // namespace
}  // namespace aah
