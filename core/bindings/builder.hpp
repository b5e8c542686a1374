#pragma once

#include <nanobind/nanobind.h>

namespace grammask {

void bind_builder(nanobind::module_& m);

}  // namespace grammask
