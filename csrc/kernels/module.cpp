// The module object: joins the method tables and constants of the family files. Nothing is computed here.
#include "common.h"

#include <vector>

// A family whose file is not linked in contributes nothing.
#define MT_WEAK __attribute__((weak))
MT_WEAK PyMethodDef nn_methods[] = {{nullptr, nullptr, 0, nullptr}};
MT_WEAK PyMethodDef index_methods[] = {{nullptr, nullptr, 0, nullptr}};
MT_WEAK PyMethodDef matmul_methods[] = {{nullptr, nullptr, 0, nullptr}};
extern PyMethodDef random_methods[];
MT_WEAK PyMethodDef random_methods[] = {{nullptr, nullptr, 0, nullptr}};
extern MT_WEAK const mt::IntConstant nn_constants[] = {{nullptr, 0}};
extern MT_WEAK const mt::IntConstant index_constants[] = {{nullptr, 0}};
extern MT_WEAK const mt::IntConstant matmul_constants[] = {{nullptr, 0}};

using namespace mt;

static std::vector<PyMethodDef>& all_methods() {
    static std::vector<PyMethodDef> methods;
    return methods;
}

static PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, "mindtorch_v2._native", "CPU storage and kernels.", -1, nullptr, nullptr, nullptr, nullptr,
    nullptr};

PyMODINIT_FUNC PyInit__native(void) {
    // The table must outlive the module: CPython keeps pointers into it.
    std::vector<PyMethodDef>& methods = all_methods();
    if (methods.empty()) {
        const PyMethodDef* families[] = {storage_methods,   allocator_methods, threads_methods,
                                         copy_methods,      pointwise_methods, reduce_methods,
                                         nn_methods,        index_methods,     matmul_methods,
                                         scalars_methods,   random_methods};
        for (const PyMethodDef* family : families)
            for (; family->ml_name; ++family) methods.push_back(*family);
        methods.push_back({nullptr, nullptr, 0, nullptr});
        module_def.m_methods = methods.data();
    }
    if (PyType_Ready(&StorageType) < 0) return nullptr;
    PyObject* module = PyModule_Create(&module_def);
    if (!module) return nullptr;
    Py_INCREF(&StorageType);
    if (PyModule_AddObject(module, "Storage", reinterpret_cast<PyObject*>(&StorageType)) < 0) {
        Py_DECREF(&StorageType);
        Py_DECREF(module);
        return nullptr;
    }
    const IntConstant* constants[] = {pointwise_constants, reduce_constants, nn_constants, index_constants,
                                      matmul_constants};
    for (const IntConstant* c : constants)
        for (; c->name; ++c)
            if (PyModule_AddIntConstant(module, c->name, c->value) < 0) {
                Py_DECREF(module);
                return nullptr;
            }
    return module;
}
