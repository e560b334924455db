# What every target of ours shares: warnings, sanitizers, threads.
find_package(Threads REQUIRED)

add_library(aah_settings INTERFACE)
target_compile_options(aah_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                              -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Sees overlapping copies in `"text" + std::string` (GCC bug 105651).
  target_compile_options(aah_settings INTERFACE -Wno-restrict)
endif()
if(AAH_WARNINGS_AS_ERRORS)
  target_compile_options(aah_settings INTERFACE -Werror)
endif()
if(AAH_SANITIZE)
  target_compile_options(aah_settings INTERFACE -fsanitize=${AAH_SANITIZE} -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(aah_settings INTERFACE -fsanitize=${AAH_SANITIZE})
endif()
target_link_libraries(aah_settings INTERFACE Threads::Threads)

# aah_add_library(NAME sources...): a static library of one layer with its include/ public.
function(aah_add_library name)
  add_library(${name} STATIC ${ARGN})
  target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE aah_settings)
endfunction()

# aah_add_test(NAME LABEL label LIBRARIES libs... SOURCES sources...): a GoogleTest program, each of
# its tests known to CTest under one label.
function(aah_add_test name)
  cmake_parse_arguments(TEST "" "LABEL" "LIBRARIES;SOURCES" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${TEST_LIBRARIES} aah_settings GTest::gmock_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${TEST_LABEL})
endfunction()
