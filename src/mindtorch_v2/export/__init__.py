"""`torch.export`: importable; exporting raises."""

from __future__ import annotations

from .._unserved import offer as _offer

__all__: list[str] = []

_offer(
    __name__,
    "export export_for_training draft_export load save unflatten register_dataclass default_decompositions dims",
    "AdditionalInputs Constraint CustomDecompTable Dim ExportBackwardSignature ExportGraphSignature ExportedProgram "
    "FlatArgsAdapter ModuleCallEntry ModuleCallSignature ShapesCollection UnflattenedModule",
    "{name}: whole programs are not exported here; torch.fx.symbolic_trace records modules, torch.save keeps weights",
)
