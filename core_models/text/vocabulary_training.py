"""SentencePiece's training, a program of its own: where it finds no memory it aborts the process that it runs in.

Reads the lines and the settings from its standard input, pickled; writes the model. Run by `vocabulary`.
"""

import ctypes
import io
import pickle
import signal
import sys

import sentencepiece

REFUSED = 3  # the exit code where SentencePiece said why, which is then written instead of a model
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, prctl(2)


def main() -> None:
    if sys.platform == "linux":  # whoever waits for the model was killed: nobody needs it any more
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    lines, settings = pickle.load(sys.stdin.buffer)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **settings)
    except RuntimeError as error:
        sys.stdout.buffer.write(str(error).encode(errors="replace"))
        sys.exit(REFUSED)
    sys.stdout.buffer.write(model.getvalue())


if __name__ == "__main__":
    main()
