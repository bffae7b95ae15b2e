// SPDX-License-Identifier: Apache-2.0
//
// Columns, plan buffers and reads as a Python peer sends them, through the functions of the
// extension module in an embedded interpreter: what does not fit together is refused with an
// exception, and nothing is read outside of it. Sound columns are made first and then damaged, so
// that inputs get past the lengths. Classes of torch are stood in for.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fuzz/byte_source.h"

extern "C" PyObject* PyInit__shw_torch();

namespace {

using shardwright::fuzz::ByteSource;
using Column = std::vector<std::byte>;

constexpr size_t kColumns = 12;  // behind the number of entries: ten, numbers, order

constexpr char kSetUp[] = R"(
import _shw_torch as native
import collections

class Refused(Exception):
    pass

class Thing:
    pass

native.set_error_hooks(lambda code, message, details, retryable, cause: Refused(code, message), lambda error: (2, b"", []))
Size = type("Size", (tuple,), {})
native.items_configure((Thing, Thing, Thing, Thing, Thing, Size, "tensor", "shard", "bytes", "strided", "contiguous",
                               {}, {12: "float32", 6: "uint8"}, Thing, Thing, Thing, "read", "read_bytes"))
)";

PyObject* native = nullptr;

void start() {
  PyPreConfig config;
  PyPreConfig_InitIsolatedConfig(&config);
  config.allocator = PYMEM_ALLOCATOR_MALLOC;  // each object is a block that the sanitizer knows
  if (PyStatus_Exception(Py_PreInitialize(&config)) != 0) std::abort();
  if (PyImport_AppendInittab("_shw_torch", PyInit__shw_torch) != 0) std::abort();
  Py_InitializeEx(0);
  if (PyRun_SimpleString(kSetUp) != 0) std::abort();
  native = PyImport_ImportModule("_shw_torch");
  if (native == nullptr) std::abort();
}

template <typename Value>
void append(Column* column, Value value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  column->insert(column->end(), first, first + sizeof(value));
}

// Columns of up to four entries whose lengths fit together.
std::array<Column, kColumns> sound_columns(ByteSource* source, uint64_t count) {
  std::array<Column, kColumns> columns;
  auto& [names, name_offsets, dtypes, shapes, shape_offsets, ranges, offsets, sizes, attributes,
         attribute_offsets, numbers, order] = columns;
  uint64_t boxes = 0;
  const auto end_entry = [&] {
    append<uint64_t>(&name_offsets, names.size());
    append<uint64_t>(&shape_offsets, shapes.size() / sizeof(int64_t));
    append<uint64_t>(&ranges, boxes);
    append<uint64_t>(&attribute_offsets, attributes.size());
  };
  end_entry();
  for (uint64_t i = 0; i < count; ++i) {
    names.resize(names.size() + source->below(3), std::byte{'n'});
    const bool tensor = source->byte() % 4 != 0;
    const int ndim = tensor ? source->below(4) : 0;
    const int held = tensor ? source->below(3) : 1;
    append<int32_t>(&dtypes, tensor ? 12 : 0);
    for (int d = 0; d < ndim; ++d) append<int64_t>(&shapes, source->below(9));
    for (int value = 0; value < ndim * held; ++value) {
      append<int64_t>(&offsets, source->below(5));
      append<int64_t>(&sizes, source->below(5));
    }
    for (int box = 0; box < held; ++box) {
      append<uint64_t>(&numbers, source->below(5));
      append<uint64_t>(&order, boxes++);
    }
    const int strides = tensor ? source->below(3) : 0;
    if (tensor) append<uint8_t>(&attributes, source->byte());
    if (tensor) append<uint8_t>(&attributes, static_cast<uint8_t>(strides));
    for (int d = 0; strides == 2 && d < ndim; ++d) append<int64_t>(&attributes, source->below(100));
    end_entry();
  }
  return columns;
}

// A word of eight bytes becomes another, or the column loses or gains its end.
void spoil(ByteSource* source, Column* column) {
  static constexpr std::array<uint64_t, 6> kWords = {
      UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 61, uint64_t{1} << 60, 1, 9};
  if (source->rarely() || column->size() < sizeof(uint64_t)) {
    column->resize(column->size() + source->below(9) - std::min<size_t>(column->size(), 4));
    return;
  }
  const size_t at = source->below<size_t>(column->size() / sizeof(uint64_t)) * sizeof(uint64_t);
  const uint64_t word = kWords[source->below(kWords.size())];
  std::memcpy(column->data() + at, &word, sizeof(word));
}

PyObject* bytes_of(const Column& column) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(column.data()),
                                   static_cast<Py_ssize_t>(column.size()));
}

PyObject* columns_tuple(ByteSource* source) {
  const uint64_t count = source->below<uint64_t>(5);
  std::array<Column, kColumns> columns = sound_columns(source, count);
  for (int i = source->below(4); i > 0; --i) spoil(source, &columns[source->below(kColumns)]);
  const int given = 10 + source->below(3);
  PyObject* tuple = PyTuple_New(1 + given);
  PyTuple_SetItem(tuple, 0, PyLong_FromUnsignedLongLong(source->rarely() ? count + 1 : count));
  for (int i = 0; i < given; ++i) {
    PyObject* column =
        source->rarely() ? Py_NewRef(Py_None) : bytes_of(columns[static_cast<size_t>(i)]);
    PyTuple_SetItem(tuple, 1 + i, column);
  }
  return tuple;
}

// The tuple of columns, or any bytes as a plan buffer, with its frame repaired.
PyObject* columns_or_plan(ByteSource* source) {
  if (!source->rarely()) return columns_tuple(source);
  const std::vector<std::byte> plan = shardwright::fuzz::with_plan_frame(source->block());
  return bytes_of(plan);
}

// What a rank keeps of `count` boxes; rarely of more, and rarely None.
PyObject* kept_numbers(ByteSource* source, int count) {
  if (source->rarely()) return Py_NewRef(Py_None);
  Column numbers;
  for (int i = source->rarely() ? source->below(9) : count; i > 0; --i)
    append<uint32_t>(&numbers, source->below(2) != 0 ? UINT32_MAX : source->below(5));
  return bytes_of(numbers);
}

PyObject* reads_tuple(ByteSource* source) {
  Column values;
  const int items = source->below(4);
  for (int i = 0; i < items; ++i) {
    const int ndim = source->below(3);
    append<int64_t>(&values, source->below(2));
    for (int index = 0; index < 2; ++index) {
      const int extents = source->below(4) - 1;
      append<int64_t>(&values, source->below(3));
      append<int64_t>(&values, source->below(4) - 1);
      append<int64_t>(&values, extents);
      for (int d = 0; d < extents; ++d) append<int64_t>(&values, source->below(3));
    }
    append<int64_t>(&values, ndim);
    for (int d = 0; d < 3 * ndim; ++d) append<int64_t>(&values, source->below(3));
  }
  for (int i = source->below(3); i > 0; --i) spoil(source, &values);
  return Py_BuildValue("([ss]iN)", "a", "b", source->rarely() ? items + 1 : items,
                       bytes_of(values));
}

void call(const char* name, std::initializer_list<PyObject*> arguments) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(arguments.size()));
  Py_ssize_t place = 0;
  for (PyObject* each : arguments) PyTuple_SetItem(tuple, place++, each);
  PyObject* function = PyObject_GetAttrString(native, name);
  PyObject* found = PyObject_Call(function, tuple, nullptr);
  if ((found == nullptr) != (PyErr_Occurred() != nullptr)) __builtin_trap();
  if (found == nullptr && PyErr_ExceptionMatches(PyExc_SystemError) != 0) __builtin_trap();
  PyErr_Clear();
  Py_XDECREF(found);
  Py_DECREF(function);
  Py_DECREF(tuple);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (native == nullptr) start();
  ByteSource source({reinterpret_cast<const std::byte*>(data), size});
  switch (source.below(4)) {
    case 0:
      call("items_decode", {columns_or_plan(&source), kept_numbers(&source, source.below(9))});
      break;
    case 1:
      call("items_stored", {columns_or_plan(&source)});
      break;
    case 2: {
      PyObject* given = columns_tuple(&source);
      PyObject* items = PyObject_CallMethod(native, "items_decode", "OO", given, Py_None);
      Py_DECREF(given);
      PyErr_Clear();
      if (items == nullptr) items = PyList_New(0);
      const int count = static_cast<int>(PyList_Size(items));
      call("items_keep", {items, kept_numbers(&source, count)});
      break;
    }
    default:
      call("reads_decode", {reads_tuple(&source)});
  }
  return 0;
}
