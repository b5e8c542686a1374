#include "bindings/mask_array.hpp"

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <nanobind/ndarray.h>
#include <numpy/arrayobject.h>

namespace nb = nanobind;

namespace grammask {

namespace {

// numpy's interface is loaded with the first mask: importing grammask does not import numpy.
bool is_numpy(nb::handle array) {
  static const bool loaded = _import_array() == 0;
  if (!loaded) throw nb::python_error();
  return PyArray_CheckExact(array.ptr());
}

}  // namespace

std::span<uint32_t> mask_words(nb::handle array) {
  // Asking numpy for its memory by a protocol takes as long as most masks do.
  if (is_numpy(array)) {
    auto* const a = reinterpret_cast<PyArrayObject*>(array.ptr());
    if (PyArray_NDIM(a) == 1 && PyArray_TYPE(a) == NPY_INT32 && PyArray_ISCARRAY(a))
      return {static_cast<uint32_t*>(PyArray_DATA(a)), static_cast<size_t>(PyArray_DIM(a, 0))};
  }
  nb::ndarray<int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> out;
  if (!nb::try_cast(array, out, false))
    throw nb::type_error("a mask is filled into a writable, contiguous array of int32 with one dimension, on the CPU");
  return {reinterpret_cast<uint32_t*>(out.data()), out.shape(0)};
}

}  // namespace grammask
