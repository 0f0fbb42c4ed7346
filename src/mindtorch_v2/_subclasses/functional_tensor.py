"""`torch._subclasses.functional_tensor`: functionalization as a subclass of tensors; here it is a key of dispatch."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(
    __name__,
    "disable_functional_mode dispatch_functionalize mb_unwrap_functional_tensor",
    "BaseFunctionalizeAPI CppFunctionalizeAPI FunctionalTensor FunctionalTensorMode FunctorchFunctionalizeAPI "
    "PythonFunctionalizeAPI",
    "{name}: functionalization is no subclass of tensors here; torch.func.functionalize does it",
)
