// Runs the tests of the core: every file core/tests/**/*_test.cpp is part of this one executable.
//
//   core_tests --help                    the options of doctest
//   core_tests --test-case="*rollback*"  some of the tests

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
