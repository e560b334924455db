#ifndef AAH_TESTS_GOLDEN_GOLDEN_FILES_H_
#define AAH_TESTS_GOLDEN_GOLDEN_FILES_H_

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Golden numbers lie in JSON files, each an object whose `cases` are of one kind: the longest entry
// of Kinds() that starts the file's name (attention.json, attention_2.json: `attention`). They come
// from this folder and from the further one that the environment variable AAH_GOLDEN_DIR names.
namespace aah::golden {

// Every kind that some test program checks.
std::span<const std::string_view> Kinds();

// The kind of a file, empty where it is unknown.
std::string_view KindOf(const std::filesystem::path& file);

// All .json files of the folders, by name. Throws std::runtime_error where AAH_GOLDEN_DIR names a
// folder that is missing or holds none.
std::vector<std::filesystem::path> AllFiles();

// Calls `check(file, case)` for every case of every file of `kind`; it returns an empty string
// where the case holds, else what differs. Prints one line per file, "NAME.json: cases held H,
// passed P", and adds a GoogleTest failure for each case that does not pass or throws (a missing
// field, for one), and where there is no file of the kind.
using Check =
    std::function<std::string(const nlohmann::json& file, const nlohmann::json& golden_case)>;
void RunKind(std::string_view kind, const Check& check);

// All numbers of nested arrays, row-major.
std::vector<double> Numbers(const nlohmann::json& nested);

// Empty where each number is within 1e-4 relative or 1e-5 absolute of the expected one, else a line
// that names the first that is not.
std::string Compare(std::string_view name, std::span<const double> actual,
                    std::span<const double> expected);

}  // namespace aah::golden

#endif  // AAH_TESTS_GOLDEN_GOLDEN_FILES_H_
