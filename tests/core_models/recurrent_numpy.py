"""The recurrent family written out in NumPy, float64, one sentence and one position at a time, from the equations.

Zheng 2018, Eq. 1 to 20 and section 4.4, with the specification's reading of them; Tu 2016, Eq. 9 and 10. Reads weights
by their names in a system's state and shares no code with it.
"""

import numpy as np

State = dict[str, np.ndarray]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


class Recurrent:
    """A system's weights as arrays, and its configuration."""

    def __init__(self, system) -> None:
        self.weights = {name: value.detach().numpy() for name, value in system.state_dict().items()}
        self.config = system.config
        kind, _ = next(iter(system.config.mechanisms[0].items())) if system.config.mechanisms else ("", {})
        self.kind = kind
        self.options = system.mechanisms[kind].options if kind else None

    def w(self, name: str) -> np.ndarray:
        return self.weights[f"backbone.{name}"]

    def m(self, name: str) -> np.ndarray:
        return self.weights[f"mechanisms.{self.kind}.{name}"]

    def gru(self, get, name: str, x, h):
        """h' = u h + (1 - u) tanh(x W + b + r (h U)); rows of the matrices: reset, update, candidate."""
        entered = get(f"{name}.from_input.weight") @ x + get(f"{name}.from_input.bias")
        kept = get(f"{name}.from_state.weight") @ h
        (xr, xu, xc), (hr, hu, hc) = np.split(entered, 3), np.split(kept, 3)
        update = sigmoid(xu + hu)
        return update * h + (1 - update) * np.tanh(xc + sigmoid(xr + hr) * hc)

    def annotations(self, source: list[int]) -> np.ndarray:
        words = self.w("source_table.weight")[source]
        width = self.config.d_model
        ahead, back, state = [], [], np.zeros(width)
        for word in words:
            state = self.gru(self.w, "forward_unit", word, state)
            ahead.append(state)
        state = np.zeros(width)
        for word in words[::-1]:
            state = self.gru(self.w, "backward_unit", word, state)
            back.append(state)
        return np.concatenate([np.array(ahead), np.array(back[::-1])], axis=1)

    def summary(self, memory: np.ndarray) -> np.ndarray:
        width = self.config.d_model
        ends = self.config.summary == "end_states"
        of = np.concatenate([memory[-1, :width], memory[0, width:]]) if ends else memory.mean(0)
        return np.tanh(self.w("first_state.weight") @ of + self.w("first_state.bias"))

    def future(self, state, context):
        options = self.options
        kind, unit = options.future_unit, "units.future"
        if kind == "gru":
            return self.gru(self.m, f"{unit}.unit", context, state)
        minuend, subtrahend = self.m(f"{unit}.minuend.weight") @ state, self.m(f"{unit}.subtrahend.weight") @ context
        if kind == "gru-o":
            return self.gru(self.m, f"{unit}.unit", self.squashed(minuend - subtrahend), state)
        gates = self.m(f"{unit}.context_gates.weight") @ context + self.m(f"{unit}.context_gates.bias")
        reset, update = np.split(sigmoid(gates + self.m(f"{unit}.state_gates.weight") @ state), 2)
        return update * state + (1 - update) * self.squashed(minuend - reset * subtrahend)

    def squashed(self, difference):
        unit = "units.future"
        if not self.options.extra_map:
            return np.tanh(difference + self.m(f"{unit}.bias"))
        return np.tanh(self.m(f"{unit}.map.weight") @ difference + self.m(f"{unit}.map.bias"))

    def change(self, side: str, first, second):
        """What predicts the word, of the state that is larger in contents and the one that is smaller."""
        if self.options.delta == "plain":
            return self.m(f"heads.{side}.map.weight") @ (first - second)
        mapped = self.m(f"heads.{side}.minuend.weight") @ first - self.m(f"heads.{side}.subtrahend.weight") @ second
        return np.tanh(self.m(f"heads.{side}.map.weight") @ mapped + self.m(f"heads.{side}.map.bias"))

    def predicted(self, side: str, vector):
        own = f"mechanisms.{self.kind}.heads.{side}.matrix" in self.weights
        matrix = self.m(f"heads.{side}.matrix") if own else self.w("vocabulary.weight")
        bias = self.m(f"heads.{side}.bias") if own else self.w("vocabulary_bias")
        return log_softmax(matrix @ vector + bias)

    def covered(self, coverage, share, memory, previous, step):
        """cov_t of cov_{t-1}, a number or a few for each source word; step: t, from 1."""
        options = self.options
        if options.form == "neural":
            found = []
            for cov, alpha, h in zip(coverage, share, memory, strict=True):
                entered = self.m("cell.from_memory.weight") @ h + self.m("cell.from_memory.bias")
                entered = entered + self.m("cell.from_state.weight") @ previous
                entered = entered + self.m("cell.from_attention.weight")[:, 0] * alpha
                (xr, xu, xc), (cr, cu, cc) = (
                    np.split(entered, 3),
                    np.split(self.m("cell.from_coverage.weight") @ cov, 3),
                )
                update = sigmoid(xu + cu)
                found.append((1 - update) * cov + update * np.tanh(xc + sigmoid(xr + cr) * cc))
            return np.array(found)
        if options.fertility:
            share = share / (options.most_words * sigmoid(memory @ self.m("fertility.weight")[0]))
        if options.form == "subtractive":
            return coverage - share[:, None]
        if options.form == "max":
            return np.maximum(coverage, share[:, None])
        if options.form == "mean":
            return (coverage * (step - 1) + share[:, None]) / step
        total = coverage + share[:, None]
        return np.minimum(total, 1) if options.form == "bounded" else total

    def force(self, source: list[int], words: list[int]) -> dict[str, np.ndarray]:
        """log P over the vocabulary after every word that comes in, [T, V]: `decoder`, and of each loss; and states."""
        memory, options = self.annotations(source), self.options
        zero = np.zeros(self.config.d_model)
        state = zero if self.config.decoder_init == "zero" else self.summary(memory)
        deep = [state] * self.config.deep_layers
        layers = self.kind == "past_future_layers"
        sides = [side for side in ("past", "future") if layers and side in options.layers]
        contents = dict.fromkeys(sides, zero)
        if "future" in sides and options.future_start == "summary":
            contents["future"] = self.summary(memory)
        coverage = None
        if self.kind == "coverage":
            first = 1.0 if options.form == "subtractive" else 0.0
            coverage = np.full((len(source), options.units if options.form == "neural" else 1), first)
        keys = memory @ self.w("attention.keys.weight").T + self.w("attention.keys.bias")
        found = {name: [] for name in ("decoder", *sides, *(f"{side}.state" for side in sides), "coverage", "shares")}
        for word in words:
            embedded = self.w("target_table.weight")[word]
            query = self.gru(self.w, "word_unit", embedded, state)
            both = np.concatenate([contents[side] for side in sides]) if sides else None
            if sides and options.decoder_feed == "previous":
                query = self.gru(self.m, "meet", both, query)
            energy = self.w("attention.query.weight") @ query + keys
            if sides and options.attention == "additive":
                energy = energy + sum(self.m(f"to_energy.{side}.weight") @ contents[side] for side in sides)
            if coverage is not None:
                energy = energy + coverage @ self.m("to_energy.weight").T
            share = np.exp(log_softmax(np.tanh(energy) @ self.w("attention.energy.weight")[0]))
            context = share @ memory
            before, previous = dict(contents), state
            if "past" in sides:
                contents["past"] = self.gru(self.m, "units.past.unit", context, before["past"])
            if "future" in sides:
                contents["future"] = self.future(before["future"], context)
            both = np.concatenate([contents[side] for side in sides]) if sides else None
            state = self.after(query, context, both)
            if coverage is not None:
                coverage = self.covered(coverage, share, memory, previous, len(found["coverage"]) + 1)
                found["coverage"].append(coverage)
            hidden = state
            for number in range(len(deep)):
                deep[number] = self.gru(self.w, f"deep.{number}", np.concatenate([hidden, context]), deep[number])
                hidden = hidden + deep[number]
            read = self.w("read_state.weight") @ hidden + self.w("read_state.bias")
            read = read + self.w("read_word.weight") @ embedded + self.w("read_context.weight") @ context
            if sides:
                read = read + self.m("to_readout.weight") @ both
            logits = self.w("vocabulary.weight") @ np.tanh(read) + self.w("vocabulary_bias")
            found["decoder"].append(log_softmax(logits))
            found["shares"].append(share)
            for side in sides:
                found[f"{side}.state"].append(contents[side])
                if side in options.losses:
                    pair = (contents[side], before[side])
                    vector = self.change(side, *(pair if side == "past" else pair[::-1]))
                    found[side].append(self.predicted(side, vector))
        return {name: np.array(values) for name, values in found.items() if values}

    def after(self, query, context, both):
        """GRU2(s'', c_t), to whose gates `current` states add their terms."""
        entered = self.w("context_unit.from_input.weight") @ context + self.w("context_unit.from_input.bias")
        if both is not None and self.options.decoder_feed == "current":
            entered = entered + self.m("to_gates.weight") @ both
        (xr, xu, xc), (hr, hu, hc) = (
            np.split(entered, 3),
            np.split(self.w("context_unit.from_state.weight") @ query, 3),
        )
        update = sigmoid(xu + hu)
        return update * query + (1 - update) * np.tanh(xc + sigmoid(xr + hr) * hc)
