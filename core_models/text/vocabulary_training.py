"""SentencePiece's training as a separate program, since it aborts its process when memory runs out.

Reads the pickled lines and settings from standard input and writes the model. Called by `vocabulary`.
"""

import ctypes
import io
import pickle
import signal
import sys

import sentencepiece

REFUSED = 3  # exit code if SentencePiece reported an error, whose message is then written instead of a model
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, prctl(2)


def main() -> None:
    if sys.platform == "linux":  # end with the parent process, which waits for the model
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
