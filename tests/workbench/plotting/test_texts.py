"""Sentences about several systems say the same thing once."""

from workbench.plotting.texts import by_system, enumeration


def test_names_are_enumerated_as_in_a_sentence():
    assert [enumeration(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_what_is_said_of_several_systems_is_said_once():
    assert by_system({"a": "one", "b": "two", "c": "one"}) == "a and c: one; b: two"
    assert by_system({"a": "one", "b": "one"}) == "one", "of all of them"
    assert by_system({"a": "one"}) == "a: one"
