// SPDX-License-Identifier: Apache-2.0
#include "base/dynamic_library.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace plumb::base {
namespace {

#if defined(__APPLE__)
const char* const math_library = "libm.dylib";
#else
const char* const math_library = "libm.so.6";
#endif

TEST(DynamicLibrary, calls_a_function_of_the_first_library_that_is_there) {
    auto library = DynamicLibrary::open({"libplumb-absent.so.1", math_library}, "install the C library");
    ASSERT_TRUE(library.ok()) << library.error().message;
    EXPECT_EQ(library->name(), math_library);
    auto square_root = library->function<double(double)>("sqrt");
    ASSERT_TRUE(square_root.ok()) << square_root.error().message;
    EXPECT_EQ((*square_root)(49.0), 7.0);

    DynamicLibrary moved = std::move(*library);
    EXPECT_TRUE(moved.symbol("cos").ok());
}

TEST(DynamicLibrary, a_missing_library_is_unavailable_with_one_sentence_of_advice) {
    auto library = DynamicLibrary::open({"libplumb-absent.so.1"}, "install the driver");
    ASSERT_FALSE(library.ok());
    EXPECT_EQ(library.error().code, ErrorCode::unavailable);
    EXPECT_NE(library.error().message.find("libplumb-absent.so.1"), std::string::npos);
    EXPECT_TRUE(library.error().message.ends_with("; install the driver"));
    EXPECT_EQ(library.error().message.find('\n'), std::string::npos);
}

#if defined(__GLIBC__)
TEST(DynamicLibrary, names_that_are_nowhere_are_listed_once_and_what_is_wrong_with_others_is_said) {
    const auto missing = DynamicLibrary::open({"libplumb-absent.so.2", "libplumb-absent.so"}, "install it");
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().message, "libplumb-absent.so.2 cannot be opened (there is no libplumb-absent.so.2, no "
                                       "libplumb-absent.so); install it");
    const auto broken = DynamicLibrary::open({"libplumb-absent.so.2", "/dev/null"}, "install it");
    ASSERT_FALSE(broken.ok());
    EXPECT_NE(broken.error().message.find("/dev/null: "), std::string::npos) << broken.error().message;
    EXPECT_NE(broken.error().message.find("there is no libplumb-absent.so.2);"), std::string::npos);
}
#endif

TEST(DynamicLibrary, a_missing_symbol_is_named_with_its_library) {
    auto library = DynamicLibrary::open({math_library}, "install the C library");
    ASSERT_TRUE(library.ok());
    auto symbol = library->symbol("plumb_absent");
    ASSERT_FALSE(symbol.ok());
    EXPECT_EQ(symbol.error().code, ErrorCode::unsupported);
    EXPECT_EQ(symbol.error().message,
              std::string(math_library) + " has no plumb_absent; install a newer version of it");
}

TEST(DynamicLibrary, empty_and_broken_names_are_refused) {
    EXPECT_EQ(DynamicLibrary::open({}, "").error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(DynamicLibrary::open({""}, "").error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(DynamicLibrary::open({std::string("a\0b", 3)}, "").error().code, ErrorCode::invalid_argument);
}

} // namespace
} // namespace plumb::base
