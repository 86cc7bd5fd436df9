"""The order in which the resources of a template are made."""

from graphlib import CycleError, TopologicalSorter

from ..protocol.json_objects import JsonObject
from .evaluate import Evaluator, conditional_references, references
from .template import TemplateError


def active_resources(evaluator: Evaluator) -> dict[str, JsonObject]:
    """The resources whose condition holds, in template order."""
    return {name: item for name, item in evaluator.template["Resources"].items() if evaluator.active(item)}


def order(evaluator: Evaluator) -> dict[str, list[str]]:
    """Each active resource with those it depends on, dependencies first.

    Raises TemplateError for a reference to something that the template does not have, and for a circle.
    """
    template = evaluator.template
    names = active_resources(evaluator)
    known = set(template["Resources"]) | set(template.get("Parameters", {})) | set(evaluator.pseudo) | {"AWS::NoValue"}
    for section, items in (("Resources", template["Resources"]), ("Outputs", template.get("Outputs", {}))):
        unknown = set[str]()
        for item in items.values():
            unknown |= references(item.get("Properties", item.get("Value"))) - known
            depends_on = item.get("DependsOn", [])
            unknown |= ({depends_on} if isinstance(depends_on, str) else set(depends_on)) - set(template["Resources"])
        if unknown:
            raise TemplateError(
                f"Template format error: Unresolved resource dependencies "
                f"[{', '.join(sorted(unknown))}] in the {section} block of the template"
            )
    depends = {name: sorted(conditional_references(evaluator, item, names)) for name, item in names.items()}
    try:
        ordered = list(TopologicalSorter(depends).static_order())
    except CycleError as error:
        raise TemplateError(
            f"Circular dependency between resources: [{', '.join(sorted(set(error.args[1])))}]"
        ) from None
    return {name: depends[name] for name in ordered}
