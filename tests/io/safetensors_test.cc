#include "aah/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aah/error.h"
#include "aah/io/file.h"
#include "tests/io/error_of.h"
#include "tests/io/temporary_folder.h"

namespace aah {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const std::string kReference = AAH_TEST_DATA "/reference.safetensors";

template <typename T>
std::vector<T> ValuesOf(const StoredTensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

template <typename T>
StoredTensor Tensor(std::string name, DType dtype, std::vector<int64_t> shape,
                    const std::vector<T>& values) {
  return {.name = std::move(name),
          .dtype = dtype,
          .shape = std::move(shape),
          .bytes = std::as_bytes(std::span(values))};
}

// A file in memory with this header and so many bytes of zeros.
std::string FileText(std::string_view header, size_t data_bytes) {
  const uint64_t size = header.size();
  std::string text(sizeof(size), '\0');
  std::memcpy(text.data(), &size, sizeof(size));
  return text + std::string(header) + std::string(data_bytes, '\0');
}

void Parse(const std::string& text) { SafetensorsFile(std::as_bytes(std::span(text)), "f"); }

TEST(Safetensors, ReadsWhatTheReferenceImplementationWrote) {
  const SafetensorsFile file(kReference);
  EXPECT_THAT(file.metadata(), ElementsAre(Pair("format", "pt")));
  ASSERT_EQ(file.tensors().size(), 7U);
  EXPECT_THAT(file.Get("weight").shape, ElementsAre(2, 3));
  EXPECT_EQ(file.Get("weight").element_count(), 6);
  EXPECT_THAT(ValuesOf<float>(file.Get("weight")), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(ValuesOf<double>(file.Get("bias")), ElementsAre(1.5, -2.0));
  EXPECT_THAT(ValuesOf<int32_t>(file.Get("ids")), ElementsAre(-1, 2));
  EXPECT_THAT(ValuesOf<int64_t>(file.Get("scalar")), ElementsAre(7));
  EXPECT_TRUE(file.Get("scalar").shape.empty());
  EXPECT_THAT(ValuesOf<uint8_t>(file.Get("mask")), ElementsAre(1, 0, 1));
  EXPECT_EQ(file.Get("half").dtype, DType::kF16);
  EXPECT_THAT(file.Get("empty").shape, ElementsAre(0, 4));
  EXPECT_EQ(file.Find("wieght"), nullptr);
}

TEST(Safetensors, WritesTheSameBytesAsTheReferenceImplementationInAnyOrder) {
  const TemporaryFolder folder;
  const SafetensorsFile file(kReference);
  std::vector<StoredTensor> tensors = file.tensors();
  for (int rotation = 0; rotation < 3; ++rotation) {
    WriteSafetensors(folder / "x", tensors, file.metadata());
    EXPECT_EQ(ReadFile(folder / "x"), ReadFile(kReference));
    std::rotate(tensors.begin(), tensors.begin() + 2, tensors.end());
  }
}

TEST(Safetensors, AnEmptyFileHoldsNothing) {
  const TemporaryFolder folder;
  WriteSafetensors(folder / "x", {});
  EXPECT_TRUE(SafetensorsFile(folder / "x").tensors().empty());
}

TEST(Safetensors, GetNamesTheNearestAndChecksDtypeAndShape) {
  const SafetensorsFile file(kReference);
  EXPECT_EQ(ErrorOf([&] { file.Get("wieght"); }),
            kReference +
                ": there is no tensor 'wieght' among its 7; the "
                "nearest name is 'weight'");
  const std::vector<int64_t> shape = {3, 2};
  EXPECT_EQ(ErrorOf([&] { file.Get("weight", DType::kF32, shape); }),
            kReference +
                ": tensor 'weight': expected F32 of shape [3, 2], "
                "got F32 of shape [2, 3]");
}

TEST(Safetensors, RefusesToWriteWhatDoesNotFit) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, 2};
  const auto write = [&](std::vector<StoredTensor> tensors) {
    WriteSafetensors(folder / "x", tensors);
  };
  const StoredTensor good = Tensor("a", DType::kF32, {2}, values);
  EXPECT_THAT(ErrorOf([&] { write({good, good}); }), HasSubstr("two tensors have the name 'a'"));
  EXPECT_THAT(ErrorOf([&] { write({Tensor("a", DType::kF32, {3}, values)}); }),
              HasSubstr("F32 of shape [3] needs 12 bytes, got 8"));
  EXPECT_THROW(write({Tensor("a", DType::kF32, {-2}, values)}), Error);
  EXPECT_THROW(write({Tensor("__metadata__", DType::kF32, {2}, values)}), Error);
  EXPECT_THROW(write({Tensor("\xff", DType::kF32, {2}, values)}), Error);
  EXPECT_THROW(WriteSafetensors(folder / "x", {}, {{"key", "\xff"}}), Error);
  EXPECT_EQ(folder.entry_count(), 0);
}

TEST(Safetensors, RefusesEveryPrefixOfAFile) {
  const std::string whole = ReadFile(kReference);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(Parse(whole.substr(0, size)), Error) << size;
  }
  Parse(whole);
  EXPECT_THAT(ErrorOf([&] { Parse(whole + "x"); }), HasSubstr("62 bytes of data"));
}

TEST(Safetensors, RefusesAHeaderLargerThanTheFile) {
  const std::string text("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
  EXPECT_EQ(ErrorOf([&] { Parse(text); }),
            "f: the header is said to have 9223372036854775807 bytes, the "
            "file has 10: not a safetensors file, or cut short");
}

TEST(Safetensors, RefusesDamagedHeaders) {
  const auto refusal = [](const std::string& entry, const std::string& expected) {
    const std::string text = FileText(R"({"a":)" + entry + "}", 8);
    EXPECT_THAT(ErrorOf([&] { Parse(text); }), HasSubstr(expected)) << entry;
  };
  Parse(FileText(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
  refusal(R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})",
          "f: tensor 'a': unknown dtype 'F33' (did you mean 'F32'?)");
  refusal(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
          "F32 of shape [3] does not fill the 8 bytes");
  refusal(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})", "cut short or damaged");
  refusal(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "cut short or damaged");
  refusal(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})", "cut short or damaged");
  refusal(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "integers of at least 0, got -2");
  refusal(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})", "got 2.0");
  refusal(R"({"dtype":"F32","shape":"2","data_offsets":[0,8]})", "expected a list of at most 64");
  refusal(R"({"dtype":"F32","shape":[2]})", "the key 'data_offsets' is missing");
  refusal(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})", "got 4 keys");
  refusal(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})",
          "does not fill");
  refusal(R"({"dtype":"U8","shape":[9223372036854775807,3],"data_offsets":[0,8]})",
          "does not fill");
  refusal("3", "expected an object");
  EXPECT_THROW(Parse(FileText("[]", 0)), Error);
  EXPECT_THROW(Parse(FileText(R"({"__metadata__":{"a":1}})", 0)), Error);
  EXPECT_THROW(Parse(FileText(R"({"__metadata__":[]})", 0)), Error);
  EXPECT_THROW(Parse(FileText(R"({"a":{},"a":{}})", 0)), Error);
}

TEST(Safetensors, RefusesHolesAndOverlap) {
  const auto two = [](const std::string& first, const std::string& second) {
    return FileText(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
                        R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                    9);
  };
  EXPECT_EQ(ErrorOf([&] { Parse(two("[0,4]", "[3,7]")); }),
            "f: tensor 'b' begins at byte 3 of the data, expected 4: the "
            "file is damaged");
  EXPECT_THAT(ErrorOf([&] { Parse(two("[0,4]", "[5,9]")); }),
              HasSubstr("begins at byte 5 of the data, expected 4"));
  EXPECT_THAT(ErrorOf([&] { Parse(two("[4,8]", "[0,4]")); }),
              HasSubstr("9 bytes of data, but the tensors fill 8"));
}

}  // namespace
}  // namespace aah
