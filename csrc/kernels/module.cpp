// The module object: joins the method tables and constants of the family files. Nothing is computed here.
#include "common.h"

#include <vector>

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
        const PyMethodDef* families[] = {storage_methods, allocator_methods, threads_methods, copy_methods,
                                         pointwise_methods, reduce_methods, nn_methods, index_methods,
                                         matmul_methods, scalars_methods, random_methods, window_methods};
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
