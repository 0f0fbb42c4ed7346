// Public functions and methods: arguments of the usual types are put into schema order here and given to the operator.
//
// Invariant: this file only ever says yes. A call that it does not understand at sight (another type, a subclass, a name
// nobody knows, a mode that looks at calls) goes, as it was made, to the function that `_api.public` writes for the same
// signature. What is refused, and in which words, is therefore decided in one place, and not here.
#include "common.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace mt {
int64_t dispatch_word();                           // threads.cpp: this thread's modes, as `_dispatch.state` keeps them
PyObject* repeated(PyObject* number, int copies);  // instances.cpp
}

namespace {

constexpr Py_ssize_t MOST_SLOTS = 24, MOST_PLAIN = 8, MOST_SILENT = 8;
constexpr long SHORT = (1L << 30) - 1;  // as in `_sizes.py`

enum Kind : long { TENSOR, TENSORS, INT, INTS, BOOL_, FLOAT, SCALAR, STR, TYPED, OTHER, MAPPED };
enum class Fit { YES, NO, UNSURE };
enum class Out : long { NONE, ONE, UNSURE, SEVERAL };  // which `out=` a signature takes

// One argument of a schema.
struct Slot {
    PyObject* name;      // interned
    PyObject* fallback;  // the default; null where there is none
    PyTypeObject* type;  // of a TYPED argument
    PyObject* known;     // what the values of a MAPPED argument stand for
    double low, high;    // of a FLOAT
    Kind kind;
    int copies;  // of a single int, which stands for a list; 0 where it does not, below 0 where it has to
    bool optional, kwonly, number, holes;
};

// One signature of a function.
struct Form {
    PyObject *op, *call;
    std::vector<Slot> slots;
    std::vector<Py_ssize_t> places;  // where positional arguments go; empty where that is the order of the slots
    Py_ssize_t kept = 0;             // slots behind these have to hold their defaults, and go nowhere
    Py_ssize_t positional = 0;
    Py_ssize_t spread = -1;  // the list whose ints may be given one by one
    Py_ssize_t device = -1;  // what a factory asks the default device for
    Py_ssize_t alike = -1;   // a tensor that has to have the shape of the first
    Out out = Out::UNSURE;
    bool named = false;
    bool gives = false;  // the list that it was given, which it writes to
};

struct Function {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *dict, *weak;
    PyObject* maker;    // makes `written`
    PyObject* written;  // the same function in Python; null before it is needed
    PyObject* instead;  // what runs in place of all this; null as a rule
    std::vector<Form>* forms;
};

// What calls speak of, given once by `define_functions`; for good, as a module is never unloaded.
PyTypeObject* plain[MOST_PLAIN] = {};
PyTypeObject* silent[MOST_SILENT] = {};  // other classes without a handler: dtype, device, ...
PyObject *call_out = nullptr, *named = nullptr, *default_device = nullptr, *retold = nullptr;
PyObject *text_out = nullptr, *text_requires_grad = nullptr, *text_shape = nullptr, *foreign = nullptr;
int64_t watched = 0;

MT_INLINE bool is_plain(PyObject* v) {
    PyTypeObject* type = Py_TYPE(v);
    if (MT_LIKELY(type == plain[0] || type == plain[1])) return plain[0] != nullptr;
    for (Py_ssize_t i = 2; i < MOST_PLAIN && plain[i]; ++i)
        if (type == plain[i]) return true;
    return false;
}

// Ints that need no closer look.
MT_INLINE bool is_short(PyObject* v) {
    if (!PyLong_CheckExact(v)) return false;
    int overflow = 0;
    const long value = PyLong_AsLongAndOverflow(v, &overflow);
    return overflow == 0 && value <= SHORT && value >= -SHORT;
}

bool all_short(PyObject* const* items, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; ++i)
        if (!is_short(items[i])) return false;
    return true;
}

bool is_plain_number(PyObject* v) { return is_short(v) || PyFloat_CheckExact(v); }

PyObject* packed(PyObject* const* items, Py_ssize_t n) {
    PyObject* made = PyTuple_New(n);
    for (Py_ssize_t i = 0; made && i < n; ++i) PyTuple_SET_ITEM(made, i, Py_NewRef(items[i]));
    return made;
}

PyObject* const* items_of(PyObject* sequence) {
    return PyTuple_Check(sequence) ? reinterpret_cast<PyTupleObject*>(sequence)->ob_item
                                   : reinterpret_cast<PyListObject*>(sequence)->ob_item;
}

// Whether a tuple's class leaves it to the tuple what it holds.
bool is_honest(PyObject* v) {
    const PyTypeObject *type = Py_TYPE(v), *own = &PyTuple_Type;
    return type == own ||
           (type->tp_iter == own->tp_iter && type->tp_as_sequence->sq_length == own->tp_as_sequence->sq_length);
}

// A tuple stays as it is, a list becomes one. Null with an error set when there is no memory.
Fit as_tuple(PyObject* v, PyObject** made) {
    *made = PyTuple_Check(v) && is_honest(v) ? Py_NewRef(v) : packed(items_of(v), Py_SIZE(v));
    return Fit::YES;
}

MT_INLINE bool is_number_or_text(PyObject* v) {
    return PyLong_CheckExact(v) || PyFloat_CheckExact(v) || PyUnicode_CheckExact(v) || PyBool_Check(v);
}

Fit fit_list(const Slot& slot, PyObject* v, PyObject** made) {
    const bool sequence = PyTuple_Check(v) || PyList_CheckExact(v);
    if (slot.kind == INTS) {
        if (sequence && (slot.copies < 0 || (slot.copies > 1 && Py_SIZE(v) != slot.copies))) return Fit::UNSURE;
        if (sequence) return all_short(items_of(v), Py_SIZE(v)) ? as_tuple(v, made) : Fit::UNSURE;
        if (slot.copies && is_short(v)) {
            *made = mt::repeated(v, std::abs(slot.copies));
            return Fit::YES;
        }
        return is_number_or_text(v) && !PyLong_CheckExact(v) ? Fit::NO : Fit::UNSURE;
    }
    if (!sequence) return is_plain(v) || is_number_or_text(v) ? Fit::NO : Fit::UNSURE;
    for (Py_ssize_t i = 0; i < Py_SIZE(v); ++i)
        if (!is_plain(items_of(v)[i]) && !(slot.holes && items_of(v)[i] == Py_None)) return Fit::UNSURE;
    return as_tuple(v, made);
}

MT_INLINE bool is_within(const Slot& slot, double v) { return !(v < slot.low || v > slot.high); }

// Whether a value is what a signature wants, and the value in its type.
MT_INLINE Fit fit(const Slot& slot, PyObject* v, PyObject** made) {
    *made = nullptr;
    if (slot.kind == MAPPED) {
        if (v != Py_None && !PyUnicode_CheckExact(v)) return Fit::UNSURE;
        *made = Py_XNewRef(PyDict_GetItemWithError(slot.known, v));
        return *made ? Fit::YES : Fit::UNSURE;
    }
    if (slot.kind == TENSOR ? is_plain(v) : v == slot.fallback) {
        *made = Py_NewRef(v);
        return Fit::YES;
    }
    if (v == Py_None) {
        if (!slot.optional || slot.kind == TENSORS || slot.kind == INTS) return Fit::UNSURE;
        *made = Py_NewRef(v);
        return Fit::YES;
    }
    Fit answer = Fit::UNSURE;
    switch (slot.kind) {
        case TENSOR:
            if (is_short(v) || PyFloat_CheckExact(v)) answer = slot.number ? Fit::YES : Fit::NO;
            break;
        case INT:
            if (is_short(v)) answer = Fit::YES;
            else if (PyFloat_CheckExact(v) || PyUnicode_CheckExact(v) || PyBool_Check(v) || PyTuple_CheckExact(v) ||
                     PyList_CheckExact(v))
                answer = Fit::NO;
            break;
        case BOOL_:
            if (PyBool_Check(v)) answer = Fit::YES;
            else if (is_number_or_text(v) || is_plain(v)) answer = Fit::NO;
            break;
        case FLOAT:
            if (PyFloat_CheckExact(v)) answer = is_within(slot, PyFloat_AS_DOUBLE(v)) ? Fit::YES : Fit::UNSURE;
            else if (is_short(v)) {
                if (!is_within(slot, (double)PyLong_AsLong(v))) return Fit::UNSURE;
                *made = PyFloat_FromDouble((double)PyLong_AsLong(v));
                return Fit::YES;
            } else if (PyUnicode_CheckExact(v) || PyBool_Check(v)) answer = Fit::NO;
            break;
        case SCALAR:
            if (PyFloat_CheckExact(v)) answer = is_within(slot, PyFloat_AS_DOUBLE(v)) ? Fit::YES : Fit::UNSURE;
            else if (is_short(v)) answer = is_within(slot, (double)PyLong_AsLong(v)) ? Fit::YES : Fit::UNSURE;
            else if (PyTuple_CheckExact(v) || PyList_CheckExact(v)) answer = Fit::NO;
            break;
        case STR:
            if (PyUnicode_CheckExact(v)) answer = Fit::YES;
            else if (is_number_or_text(v) || is_plain(v)) answer = Fit::NO;
            break;
        case TYPED:
            if (Py_TYPE(v) == slot.type) answer = Fit::YES;
            break;
        case TENSORS:
        case INTS: return fit_list(slot, v, made);
        case OTHER:
        case MAPPED: break;
    }
    if (answer == Fit::YES) *made = Py_NewRef(v);
    return answer;
}

Py_ssize_t slot_of(const Form& form, PyObject* name) {
    const Py_ssize_t n = (Py_ssize_t)form.slots.size();
    for (Py_ssize_t i = 0; i < n; ++i)
        if (form.slots[i].name == name) return i;
    for (Py_ssize_t i = 0; i < n; ++i)
        if (PyUnicode_Compare(form.slots[i].name, name) == 0) return i;
    return -1;
}

// A keyword that is no argument of the schema. `several`: other signatures may know it.
Fit other_keyword(const Form& form, PyObject* name, PyObject* value, bool several, PyObject** out) {
    if (PyUnicode_Compare(name, text_out) == 0) {
        if (several && (form.out == Out::NONE || (form.out == Out::ONE && PyTuple_CheckExact(value)))) return Fit::NO;
        const bool tuple = form.out == Out::SEVERAL && PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) > 0;
        for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(value); ++i)
            if (!is_plain(PyTuple_GET_ITEM(value, i))) return Fit::UNSURE;
        if (!tuple && (form.out != Out::ONE || (value != Py_None && !is_plain(value)))) return Fit::UNSURE;
        *out = value == Py_None ? nullptr : value;
        return Fit::YES;
    }
    if (form.device >= 0 && value == Py_False && PyUnicode_Compare(name, text_requires_grad) == 0) return Fit::YES;
    const int known = several ? PySet_Contains(foreign, name) : 1;
    if (known < 0) PyErr_Clear();
    return known == 0 ? Fit::NO : Fit::UNSURE;
}

// Arguments in schema order, a new tuple; `out` is borrowed.
Fit bind(const Form& form, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, bool several, PyObject** bound,
         PyObject** out) {
    const Py_ssize_t n = (Py_ssize_t)form.slots.size();
    PyObject* given[MOST_SLOTS] = {};
    Py_ssize_t direct = nargs;
    bool spread = false;
    if (form.spread >= 0 && nargs > form.spread) {
        spread = all_short(args + form.spread, nargs - form.spread);
        if (spread) direct = form.spread;
    }
    if (direct > form.positional) return several && form.spread < 0 ? Fit::NO : Fit::UNSURE;
    const bool in_order = form.places.empty();
    for (Py_ssize_t i = 0; i < direct; ++i) given[in_order ? i : form.places[i]] = args[i];
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k), *value = args[nargs + k];
        const Py_ssize_t at = slot_of(form, name);
        if (at >= 0) {
            // A slot without a name is filled by no caller.
            if (given[at] || (spread && at == form.spread) || !PyUnicode_GET_LENGTH(name)) return Fit::UNSURE;
            given[at] = value;
        } else if (const Fit answer = other_keyword(form, name, value, several, out); answer != Fit::YES) return answer;
    }
    for (Py_ssize_t i = form.kept; i < n; ++i)
        if (given[i] && (form.slots[i].fallback ? given[i] != form.slots[i].fallback : !is_plain_number(given[i])))
            return Fit::UNSURE;
    PyObject* tuple = PyTuple_New(form.kept);
    if (!tuple) return Fit::YES;
    Fit answer = Fit::YES;
    for (Py_ssize_t i = 0; i < form.kept; ++i) {
        const Slot& slot = form.slots[i];
        PyObject* made = nullptr;
        if (i == form.device && (!given[i] || given[i] == Py_None)) made = PyObject_CallNoArgs(default_device);
        else if (given[i]) answer = fit(slot, given[i], &made);
        else if (spread && i == form.spread) made = packed(args + i, nargs - i);
        else if (!slot.fallback || i == form.spread) answer = several && i != form.spread ? Fit::NO : Fit::UNSURE;
        else made = Py_NewRef(slot.fallback);
        if (!made) {
            Py_DECREF(tuple);
            return answer;  // or an error is set
        }
        PyTuple_SET_ITEM(tuple, i, made);
    }
    *bound = tuple;
    return Fit::YES;
}

PyObject* run(const Form& form, PyObject* bound, PyObject* out) {
    PyObject* result;
    if (out) {
        PyObject* const given[] = {form.op, bound, out};
        result = PyObject_Vectorcall(call_out, given, 3, nullptr);
    } else {
        result = PyObject_Vectorcall(form.call, &bound, 1, nullptr);
        if (result && form.named && PyTuple_CheckExact(result)) {
            PyObject* const given[] = {form.op, result};
            PyObject* shown = PyObject_Vectorcall(named, given, 2, nullptr);
            Py_DECREF(result);
            result = shown;
        }
    }
    Py_DECREF(bound);
    return result;
}

PyObject* written(Function* self) {
    if (!self->written) self->written = PyObject_CallNoArgs(self->maker);
    return self->written;
}

// What Python raises by itself, on purpose or not; other errors are the operator's own.
bool is_retold() {
    PyObject* const kinds[] = {PyExc_TypeError,       PyExc_AttributeError, PyExc_ValueError,       PyExc_LookupError,
                               PyExc_ArithmeticError, PyExc_AssertionError, PyExc_UnboundLocalError};
    for (PyObject* kind : kinds)
        if (PyErr_ExceptionMatches(kind)) return true;
    return false;
}

// A refusal is told of the call as it was made: the function in Python has converted some of it, or was not even
// entered. The error that is set stays where there is nothing else to say.
void retell(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    PyObject *given = packed(args, nargs), *by_name = PyDict_New(), *told = nullptr;
    bool whole = given && by_name;
    for (Py_ssize_t k = 0; whole && kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
        whole = PyDict_SetItem(by_name, PyTuple_GET_ITEM(kwnames, k), args[nargs + k]) == 0;
    if (whole) {
        PyObject* const asked[] = {self, given, by_name, value};
        told = PyObject_Vectorcall(retold, asked, 4, nullptr);
    }
    if (told && PyExceptionInstance_Check(told)) {
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(told)), told);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    } else {
        PyErr_Restore(type, value, trace);  // also where telling failed
    }
    Py_XDECREF(told);
    Py_XDECREF(given);
    Py_XDECREF(by_name);
}

PyObject* in_words(Function* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    PyObject* fn = written(self);
    PyObject* result = fn ? PyObject_Vectorcall(fn, args, nargsf, kwnames) : nullptr;
    if (MT_UNLIKELY(!result) && fn && is_retold())
        retell(reinterpret_cast<PyObject*>(self), args, PyVectorcall_NARGS(nargsf), kwnames);
    return result;
}

PyObject* call(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    Function* self = reinterpret_cast<Function*>(callable);
    if (MT_UNLIKELY(self->instead != nullptr)) return PyObject_Vectorcall(self->instead, args, nargsf, kwnames);
    if (MT_UNLIKELY(mt::dispatch_word() & watched)) return in_words(self, args, nargsf, kwnames);
    const bool several = self->forms->size() > 1;
    for (const Form& form : *self->forms) {
        PyObject *bound = nullptr, *out = nullptr;
        if (form.gives && PyVectorcall_NARGS(nargsf) == 0) break;
        const Fit answer = bind(form, args, PyVectorcall_NARGS(nargsf), kwnames, several, &bound, &out);
        if (answer == Fit::NO) continue;
        if (answer == Fit::UNSURE) break;
        if (!bound) return nullptr;
        PyObject* result = run(form, bound, out);
        if (result && form.gives) Py_SETREF(result, Py_NewRef(args[0]));
        if (MT_UNLIKELY(!result) && is_retold()) retell(callable, args, PyVectorcall_NARGS(nargsf), kwnames);
        return result;
    }
    return in_words(self, args, nargsf, kwnames);
}

// ------------------------------------------------------------------------------------------------ the Python objects

Slot read_slot(PyObject* given) {
    if (!PyTuple_Check(given)) mt::fail(PyExc_TypeError, "Function(): an argument is described by a tuple");
    PyObject *name, *fallback, *type;
    long kind;
    int optional, kwonly, number, holes, copies, has_default;
    double low = -HUGE_VAL, high = HUGE_VAL;
    if (!PyArg_ParseTuple(given, "UlppppipOO|dd:slot", &name, &kind, &optional, &kwonly, &number, &holes, &copies,
                          &has_default, &fallback, &type, &low, &high))
        mt::fail_set();
    if (kind < TENSOR || kind > MAPPED) mt::fail(PyExc_ValueError, "Function(): there is no kind %ld", kind);
    if (copies < -3 || copies > 3) mt::fail(PyExc_ValueError, "Function(): an int cannot stand for %d", copies);
    if (kind == TYPED && !PyType_Check(type)) mt::fail(PyExc_TypeError, "Function(): a type is missing");
    if (kind == MAPPED && !PyDict_CheckExact(type)) mt::fail(PyExc_TypeError, "Function(): a dictionary is missing");
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name);
    return Slot{name,
                has_default ? Py_NewRef(fallback) : nullptr,
                kind == TYPED ? reinterpret_cast<PyTypeObject*>(Py_NewRef(type)) : nullptr,
                kind == MAPPED ? Py_NewRef(type) : nullptr,
                low,
                high,
                (Kind)kind,
                copies,
                optional != 0,
                kwonly != 0,
                number != 0,
                holes != 0};
}

Form read_form(PyObject* given) {
    if (!PyTuple_Check(given)) mt::fail(PyExc_TypeError, "Function(): a signature is described by a tuple");
    PyObject *op, *call, *slots, *places = nullptr;
    Py_ssize_t spread, device, kept = -1, alike = -1;
    long out, result;
    if (!PyArg_ParseTuple(given, "OOO!nnll|O!nn:form", &op, &call, &PyTuple_Type, &slots, &spread, &device, &out,
                          &result, &PyTuple_Type, &places, &kept, &alike))
        mt::fail_set();
    const Py_ssize_t n = PyTuple_GET_SIZE(slots);
    if (n > MOST_SLOTS || spread >= n || device >= n || kept > n || alike >= n)
        mt::fail(PyExc_ValueError, "Function(): too many arguments");
    Form form;
    for (Py_ssize_t i = 0; i < n; ++i) {
        form.slots.push_back(read_slot(PyTuple_GET_ITEM(slots, i)));
        if (!form.slots.back().kwonly) form.positional = i + 1;
    }
    for (Py_ssize_t i = 0; places && i < PyTuple_GET_SIZE(places); ++i) {
        form.places.push_back(mt::as_int(PyTuple_GET_ITEM(places, i)));
        if (form.places.back() < 0 || form.places.back() >= n) mt::fail(PyExc_ValueError, "Function(): no such place");
    }
    if (places) form.positional = PyTuple_GET_SIZE(places);
    form.kept = kept < 0 ? n : kept;
    form.alike = alike;
    form.op = Py_NewRef(op);
    form.call = Py_NewRef(call);
    form.spread = spread;
    form.device = device;
    form.out = out >= 0 && out <= (long)Out::SEVERAL ? (Out)out : Out::UNSURE;
    form.named = result == 1;
    form.gives = result == 2;
    return form;
}

PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject*) {
    return mt::guard([&]() -> PyObject* {
        PyObject *forms, *maker;
        if (!PyArg_ParseTuple(args, "O!O:Function", &PyTuple_Type, &forms, &maker)) mt::fail_set();
        if (!text_out) mt::fail(PyExc_RuntimeError, "Function(): define_functions() was not called");
        auto read = std::vector<Form>();
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(forms); ++i) read.push_back(read_form(PyTuple_GET_ITEM(forms, i)));
        Function* self = reinterpret_cast<Function*>(type->tp_alloc(type, 0));
        if (!self) mt::fail_set();
        self->vectorcall = call;
        self->maker = Py_NewRef(maker);
        self->forms = new std::vector<Form>(std::move(read));
        return reinterpret_cast<PyObject*>(self);
    });
}

void forget(Form& form) {
    for (Slot& slot : form.slots) {
        Py_DECREF(slot.name);
        Py_XDECREF(slot.fallback);
        Py_XDECREF(reinterpret_cast<PyObject*>(slot.type));
        Py_XDECREF(slot.known);
    }
    Py_DECREF(form.op);
    Py_DECREF(form.call);
}

void function_dealloc(PyObject* object) {
    Function* self = reinterpret_cast<Function*>(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    if (self->forms)
        for (Form& form : *self->forms) forget(form);
    delete self->forms;
    Py_XDECREF(self->dict);
    Py_XDECREF(self->maker);
    Py_XDECREF(self->written);
    Py_XDECREF(self->instead);
    Py_TYPE(object)->tp_free(object);
}

int function_traverse(PyObject* object, visitproc visit, void* arg) {
    Function* self = reinterpret_cast<Function*>(object);
    Py_VISIT(self->dict);
    Py_VISIT(self->maker);
    Py_VISIT(self->written);
    Py_VISIT(self->instead);
    return 0;
}

int function_clear(PyObject* object) {
    Function* self = reinterpret_cast<Function*>(object);
    Py_CLEAR(self->dict);
    Py_CLEAR(self->instead);
    return 0;  // what makes and serves calls stays: the object may still be called
}

PyObject* attribute(PyObject* self, const char* name) { return PyObject_GetAttrString(self, name); }

PyObject* function_repr(PyObject* self) {
    PyObject* name = attribute(self, "__qualname__");
    if (!name) return nullptr;
    PyObject* text = PyUnicode_FromFormat("<built-in function %U>", name);
    Py_DECREF(name);
    return text;
}

// pickle and copy look functions up by their names.
PyObject* reduce(PyObject* self, PyObject*) { return attribute(self, "__qualname__"); }

PyObject* get_written(PyObject* self, void*) { return Py_XNewRef(written(reinterpret_cast<Function*>(self))); }

PyObject* get_instead(PyObject* self, void*) {
    PyObject* found = reinterpret_cast<Function*>(self)->instead;
    return Py_NewRef(found ? found : Py_None);
}

int set_instead(PyObject* self, PyObject* value, void*) {
    PyObject* fresh = !value || value == Py_None ? nullptr : Py_NewRef(value);
    Py_XSETREF(reinterpret_cast<Function*>(self)->instead, fresh);
    return 0;
}

// A function is none of a class's methods, wherever it stands.
PyObject* itself(PyObject* self, PyObject*, PyObject*) { return Py_NewRef(self); }

PyObject* bound_to(PyObject* self, PyObject* object, PyObject*) {
    return !object || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

PyMethodDef function_methods_[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyGetSetDef function_fields[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"written", get_written, nullptr, "The same function in Python, which serves what is no plain case.", nullptr},
    {"instead", get_instead, set_instead, "What runs in place of this function; None as a rule.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_type(const char* name, const char* doc, unsigned long flags, descrgetfunc get) {
    PyTypeObject t{};
    t.tp_name = name;
    t.tp_doc = doc;
    t.tp_basicsize = sizeof(Function);
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | flags;
    t.tp_vectorcall_offset = offsetof(Function, vectorcall);
    t.tp_dictoffset = offsetof(Function, dict);
    t.tp_weaklistoffset = offsetof(Function, weak);
    t.tp_call = PyVectorcall_Call;
    t.tp_new = function_new;
    t.tp_dealloc = function_dealloc;
    t.tp_traverse = function_traverse;
    t.tp_clear = function_clear;
    t.tp_repr = function_repr;
    t.tp_descr_get = get;
    t.tp_methods = function_methods_;
    t.tp_getset = function_fields;
    return t;
}

// ------------------------------------------------------------------------------ functions that are written in Python

// Handlers among the arguments, and modes, see such a function as a whole. Where there are none, the function is called
// as if nothing stood before it. A method asks its tensor alone, and may take nothing else.
enum class Looks : long { AT_ALL, AT_THE_FIRST, AT_ONE };

struct Overridable {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *dict, *weak;
    PyObject *fn, *asking;  // the function itself; the same that asks handlers first
    PyObject* maker;        // makes `direct`; null where there is none, and once it was asked
    Form* direct;           // calls that come to those of one operator
};

// Whether nobody asks this value about a call.
MT_INLINE bool is_silent(PyObject* v) {
    if (is_plain(v) || v == Py_None || is_number_or_text(v)) return true;
    for (Py_ssize_t i = 0; i < MOST_SILENT && silent[i]; ++i)
        if (Py_TYPE(v) == silent[i]) return true;
    return false;
}

// A list's elements are asked, too. It is not changed meanwhile: no code runs in between.
bool is_silent_whole(PyObject* v) {
    if (is_silent(v)) return true;
    if (!PyTuple_Check(v) && !PyList_CheckExact(v)) return false;
    if (PyTuple_Check(v) && !PyTuple_CheckExact(v)) return false;  // a class of its own may have a handler
    for (Py_ssize_t i = 0; i < Py_SIZE(v); ++i)
        if (!is_silent(items_of(v)[i])) return false;
    return true;
}

// Whether two tensors have one shape.
bool are_alike(PyObject* a, PyObject* b) {
    PyObject* first = PyObject_GetAttr(a, text_shape);
    PyObject* second = first ? PyObject_GetAttr(b, text_shape) : nullptr;
    const int same = second ? first == second ? 1 : PyObject_RichCompareBool(first, second, Py_EQ) : -1;
    Py_XDECREF(first);
    Py_XDECREF(second);
    if (same < 0) PyErr_Clear();
    return same > 0;
}

// The result of a call that comes to one of an operator; null without an error where it does not.
PyObject* call_direct(Overridable* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
    const Form& form = *self->direct;
    PyObject *bound = nullptr, *out = nullptr;
    if (bind(form, args, nargs, kwnames, false, &bound, &out) != Fit::YES || !bound) {
        if (!bound) PyErr_Clear();
        return nullptr;
    }
    if (form.alike > 0 && !are_alike(PyTuple_GET_ITEM(bound, 0), PyTuple_GET_ITEM(bound, form.alike))) {
        Py_DECREF(bound);
        return nullptr;
    }
    PyObject* result = run(form, bound, nullptr);
    if (MT_UNLIKELY(!result) && is_retold()) retell(reinterpret_cast<PyObject*>(self), args, nargs, kwnames);
    return result;
}

// Asked once. Without memory, or without the operator, there is none: then the function in Python says so.
void make_direct(Overridable* self) {
    PyObject* maker = std::exchange(self->maker, nullptr);
    PyObject* given = PyObject_CallNoArgs(maker);
    Py_DECREF(maker);
    PyObject* made = mt::guard([&]() -> PyObject* {
        if (!given) mt::fail_set();
        if (given != Py_None) self->direct = new Form(read_form(given));
        return Py_NewRef(Py_None);
    });
    if (!made) PyErr_Clear();
    Py_XDECREF(made);
    Py_XDECREF(given);
}

PyObject* call_overridable(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    Overridable* self = reinterpret_cast<Overridable*>(callable);
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    bool quiet = !(mt::dispatch_word() & watched);
    if (MT_UNLIKELY(self->maker && quiet)) make_direct(self);
    if (self->direct && quiet) {
        PyObject* result = call_direct(self, args, PyVectorcall_NARGS(nargsf), kwnames);
        if (result || PyErr_Occurred()) return result;
    }
    for (Py_ssize_t i = 0; quiet && i < n; ++i) quiet = is_silent_whole(args[i]);
    return PyObject_Vectorcall(quiet ? self->fn : self->asking, args, nargsf, kwnames);
}

PyObject* call_of_tensor(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    Overridable* self = reinterpret_cast<Overridable*>(callable);
    const bool quiet = PyVectorcall_NARGS(nargsf) > 0 && is_plain(args[0]) && !(mt::dispatch_word() & watched);
    return PyObject_Vectorcall(quiet ? self->fn : self->asking, args, nargsf, kwnames);
}

// In the words of Python for a method written in C.
PyObject* refuse_arguments(PyObject* callable, Py_ssize_t nargs, PyObject* kwnames) {
    PyObject* name = PyObject_GetAttrString(callable, "__name__");
    if (!name) return nullptr;
    if (kwnames && PyTuple_GET_SIZE(kwnames))
        PyErr_Format(PyExc_TypeError, "TensorBase.%U() takes no keyword arguments", name);
    else PyErr_Format(PyExc_TypeError, "TensorBase.%U() takes no arguments (%zd given)", name, nargs - 1);
    Py_DECREF(name);
    return nullptr;
}

PyObject* call_question(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    Overridable* self = reinterpret_cast<Overridable*>(callable);
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    const bool quiet = nargs > 0 && is_plain(args[0]) && !(mt::dispatch_word() & watched);
    if (MT_LIKELY(quiet && nargs == 1 && !kwnames)) return PyObject_Vectorcall(self->fn, args, 1, nullptr);
    if (quiet) return refuse_arguments(callable, nargs, kwnames);
    return PyObject_Vectorcall(self->asking, args, nargsf, kwnames);
}

PyObject* overridable_new(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *fn, *asking, *maker = nullptr;
    long looks = 0;
    if (!PyArg_ParseTuple(args, "OO|lO:Overridable", &fn, &asking, &looks, &maker)) return nullptr;
    Overridable* self = reinterpret_cast<Overridable*>(type->tp_alloc(type, 0));
    if (!self) return nullptr;
    self->vectorcall = looks == (long)Looks::AT_ONE         ? call_question
                       : looks == (long)Looks::AT_THE_FIRST ? call_of_tensor
                                                            : call_overridable;
    self->fn = Py_NewRef(fn);
    self->asking = Py_NewRef(asking);
    self->maker = Py_XNewRef(maker);
    return reinterpret_cast<PyObject*>(self);
}

int overridable_traverse(PyObject* object, visitproc visit, void* arg) {
    Overridable* self = reinterpret_cast<Overridable*>(object);
    Py_VISIT(self->dict);
    Py_VISIT(self->fn);
    Py_VISIT(self->asking);
    Py_VISIT(self->maker);
    return 0;
}

int overridable_clear(PyObject* object) {
    Py_CLEAR(reinterpret_cast<Overridable*>(object)->dict);
    return 0;  // what serves calls stays: the object may still be called
}

void overridable_dealloc(PyObject* object) {
    Overridable* self = reinterpret_cast<Overridable*>(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    Py_XDECREF(self->dict);
    Py_XDECREF(self->fn);
    Py_XDECREF(self->asking);
    Py_XDECREF(self->maker);
    if (self->direct) forget(*self->direct);
    delete self->direct;
    Py_TYPE(object)->tp_free(object);
}

PyObject* overridable_repr(PyObject* self) {
    PyObject* name = attribute(self, "__qualname__");
    if (!name) return nullptr;
    PyObject* text = PyUnicode_FromFormat("<function %U at %p>", name, self);
    Py_DECREF(name);
    return text;
}

PyGetSetDef overridable_fields[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                                    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject make_overridable_type() {
    PyTypeObject t{};
    t.tp_name = "mindtorch_v2._native.Overridable";
    t.tp_doc = "A public function written in Python, which handlers and modes see as a whole.";
    t.tp_basicsize = sizeof(Overridable);
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
    t.tp_vectorcall_offset = offsetof(Overridable, vectorcall);
    t.tp_dictoffset = offsetof(Overridable, dict);
    t.tp_weaklistoffset = offsetof(Overridable, weak);
    t.tp_call = PyVectorcall_Call;
    t.tp_new = overridable_new;
    t.tp_dealloc = overridable_dealloc;
    t.tp_traverse = overridable_traverse;
    t.tp_clear = overridable_clear;
    t.tp_repr = overridable_repr;
    t.tp_descr_get = bound_to;
    t.tp_methods = function_methods_;
    t.tp_getset = overridable_fields;
    return t;
}

// ---------------------------------------------------------------------------------------------------- what they share

PyObject* define_functions(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args("define_functions", nargs, 6);
        if (!PyFrozenSet_Check(args[3])) mt::fail(PyExc_TypeError, "define_functions() expects a frozenset of names");
        watched = mt::as_int(args[4]);
        for (int i = 0; i < 4; ++i) Py_INCREF(args[i]);
        retold = Py_NewRef(args[5]);
        call_out = args[0];
        named = args[1];
        default_device = args[2];
        foreign = args[3];
        text_out = PyUnicode_InternFromString("out");
        text_requires_grad = PyUnicode_InternFromString("requires_grad");
        text_shape = PyUnicode_InternFromString("_shape");
        if (!text_out || !text_requires_grad || !text_shape) mt::fail_set();
        Py_RETURN_NONE;
    });
}

template <Py_ssize_t N>
PyObject* add_class(const char* name, PyTypeObject* (&places)[N], PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args(name, nargs, 1);
        if (!PyType_Check(args[0])) mt::fail(PyExc_TypeError, "%s() expects a class", name);
        for (PyTypeObject*& place : places)
            if (!place || reinterpret_cast<PyObject*>(place) == args[0]) {
                place = reinterpret_cast<PyTypeObject*>(Py_NewRef(args[0]));
                Py_RETURN_NONE;
            }
        mt::fail(PyExc_ValueError, "%s(): there are too many classes", name);
    });
}

PyObject* add_plain(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return add_class("add_plain", plain, args, nargs);
}

PyObject* add_silent(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return add_class("add_silent", silent, args, nargs);
}

}  // namespace

namespace mt {
PyTypeObject FunctionType = make_type("mindtorch_v2._native.Function", "A public function of operators.", 0, itself);
PyTypeObject MethodType =
    make_type("mindtorch_v2._native.Method", "A public method of operators.", Py_TPFLAGS_METHOD_DESCRIPTOR, bound_to);

PyTypeObject OverridableType = make_overridable_type();

bool ready_function_types() {
    return PyType_Ready(&FunctionType) == 0 && PyType_Ready(&MethodType) == 0 && PyType_Ready(&OverridableType) == 0;
}
}  // namespace mt

PyMethodDef function_methods[] = {
    MT_METHOD("define_functions", define_functions,
              "define_functions(call_out, named, default_device, foreign, watched): what public functions speak of."),
    MT_METHOD("add_plain", add_plain, "add_plain(cls): a class of tensors whose calls nobody looks at."),
    MT_METHOD("add_silent", add_silent, "add_silent(cls): a class of arguments, no tensors, that have no handler."),
    {nullptr, nullptr, 0, nullptr}};
