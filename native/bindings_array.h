// Arrays of a Python caller: checked, and held while native code uses them.
#pragma once

#include <climits>
#include <initializer_list>

#include "bindings.h"

namespace keisei {

template <class T> struct Element;
template <> struct Element<float> { static constexpr const char *name = "float32", *format = "f"; };
template <> struct Element<double> { static constexpr const char *name = "float64", *format = "d"; };
template <> struct Element<int32_t> { static constexpr const char *name = "int32", *format = "i"; };
template <> struct Element<int16_t> { static constexpr const char *name = "int16", *format = "h"; };
template <> struct Element<uint8_t> { static constexpr const char *name = "uint8", *format = "B"; };
template <> struct Element<bool> { static constexpr const char *name = "bool", *format = "?"; };

constexpr Py_ssize_t ANY = -1;

inline std::string text_of(nb::handle object) {
    const nb::object text = nb::steal(PyObject_Str(object.ptr()));
    if (!text.is_valid()) nb::raise_python_error();
    return std::string(utf8(text));
}

// A caller's array, held while native code uses it; None means that the array is not wanted.
template <class T>
class Array {
public:
    Array(nb::handle object, const char* name, std::initializer_list<Py_ssize_t> shape, bool writable) {
        if (object.is_none()) return;
        const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) {
            if (!PyErr_ExceptionMatches(PyExc_Exception)) nb::raise_python_error();  // such as Ctrl-C
            PyErr_Clear();
        } else if (fits(shape)) {
            return;
        }
        PyBuffer_Release(&view_);
        raise_value_error(expectation(object, name, shape, writable));
    }
    ~Array() { PyBuffer_Release(&view_); }  // does nothing if there is no buffer
    Array(const Array&) = delete;

    T* data() const { return static_cast<T*>(view_.buf); }
    int rows() const { return int(view_.shape[0]); }
    Py_ssize_t columns() const { return view_.shape[1]; }

private:
    bool fits(std::initializer_list<Py_ssize_t> shape) const {
        if (std::string_view(view_.format) != Element<T>::format || size_t(view_.ndim) != shape.size()) return false;
        size_t i = 0;
        for (Py_ssize_t n : shape) {
            if (n != ANY && view_.shape[i] != n) return false;
            ++i;
        }
        return view_.shape[0] < INT_MAX;
    }
    static std::string expectation(nb::handle object, const char* name, std::initializer_list<Py_ssize_t> shape,
                                   bool writable) {
        std::string text = std::string(name) + ": expected a " + (writable ? "writable " : "") + "C-contiguous " +
                           Element<T>::name + " array of shape (";
        for (Py_ssize_t n : shape) text += (n == ANY ? "N" : std::to_string(n)) + ", ";
        text.resize(text.size() - (shape.size() > 1 ? 2 : 1));
        text += "), got ";
        if (!nb::hasattr(object, "dtype") || !nb::hasattr(object, "shape"))
            return text + text_of(object.type().attr("__name__"));
        text += text_of(object.attr("dtype")) + " of shape " + text_of(object.attr("shape"));
        if (!nb::hasattr(object, "flags")) return text + ", without a buffer (for a torch tensor, pass .numpy())";
        const nb::object facts = object.attr("flags");
        if (!nb::cast<bool>(facts.attr("c_contiguous"))) text += ", not C-contiguous";
        if (!nb::cast<bool>(facts.attr("aligned"))) text += ", not aligned";
        if (writable && !nb::cast<bool>(facts.attr("writeable"))) text += ", read-only";
        return text;
    }

    Py_buffer view_{};
};

}  // namespace keisei
