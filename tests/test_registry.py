"""`Registry`: what is registered is found by its name, and nothing else is."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geonode.errors import InputError
from geonode.registry import Registry

NAMES = st.text(min_size=1).filter(str.strip)


def shape_registry() -> Registry:
    registry: Registry[type] = Registry("shape")

    @registry.register("circle")
    class Circle:
        pass

    @registry.register("square")
    class Square:
        pass

    return registry


@given(st.dictionaries(NAMES, st.builds(object), max_size=5))
def test_what_is_registered_is_found_by_its_name_in_order(items):
    registry: Registry[object] = Registry("thing")
    for name, item in items.items():
        assert registry.register(name)(item) is item
    assert registry.names() == list(items)
    assert len(registry) == len(items)
    for name, item in items.items():
        assert name in registry
        assert registry[name] is item
        assert registry.name_of(item) == name


def test_a_class_and_its_instances_have_one_name_and_a_subclass_has_none():
    registry = shape_registry()
    circle = registry["circle"]
    assert registry.name_of(circle) == registry.name_of(circle()) == "circle"
    with pytest.raises(InputError, match=r"Oval is not a registered shape; register its class"):
        registry.name_of(type("Oval", (circle,), {})())


@pytest.mark.parametrize("name", ["triangle", "", "Circle", None, 3, ["circle"]])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(InputError, match=r"shape=.* is not known; choose one of circle, square\."):
        shape_registry()[name]
    with pytest.raises(InputError, match=r"^outline=.* is not known"):
        shape_registry().find(name, argument="outline")


@pytest.mark.parametrize("name", ["", " ", None, 3])
def test_a_name_is_a_text(name):
    with pytest.raises(InputError, match="A shape is registered under a name"):
        shape_registry().register(name)


def test_a_taken_name_is_refused_but_a_definition_may_run_again():
    registry = shape_registry()
    with pytest.raises(InputError, match=r"The shape name 'circle' is taken by .*Circle; choose another name\."):
        registry.register("circle")(type("Round", (), {}))
    again = type("Circle", (), {"__qualname__": registry["circle"].__qualname__})
    again.__module__ = registry["circle"].__module__
    registry.register("circle")(again)
    assert registry["circle"] is again
    assert registry.names() == ["circle", "square"]


def test_an_empty_registry_says_so():
    with pytest.raises(InputError, match=r"choose one of \(none\)"):
        Registry("shape")["circle"]


def test_modules_of_the_package_are_imported_when_the_registry_is_first_asked(tmp_path, monkeypatch):
    package = tmp_path / "shapes_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from geonode.registry import Registry\nSHAPES = Registry('shape', package=__name__)\n"
    )
    for name in ("circle", "square"):
        (package / f"{name}.py").write_text(
            f"from shapes_of_a_test import SHAPES\nseen = list(SHAPES)\n"
            f"SHAPES.register('{name}')(type('{name}', (), {{}}))\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    from shapes_of_a_test import SHAPES  # pyright: ignore[reportMissingImports]

    assert "shapes_of_a_test.circle" not in sys.modules
    assert "square" in SHAPES
    assert SHAPES.names() == ["circle", "square"]
    assert sys.modules["shapes_of_a_test.square"].seen == ["circle"]
