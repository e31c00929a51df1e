// A line of words that are marked by clicks, a legend, and other texts below. Words are buttons: the line is one stop
// of the tab key, arrows go from word to word, Enter and the space bar click.
// Once the form is submitted, the words take no clicks until new data comes: such clicks would be lost.
// data: key, label, words, marks [{name, label}], positions {mark: [word]}, others [{label, text}], submissions.

export default function ({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".marks")
  // Clicks in a form reach Python with the form: until then only the browser knows them.
  if (root.wordMarks?.key !== data.key) {
    const marksOf = data.words.map((_, word) => data.marks.map(({ name }) => data.positions[name].includes(word)))
    root.wordMarks = { key: data.key, marksOf, current: 0 }
  }
  const state = root.wordMarks

  const element = (name, className, textContent = "") =>
    Object.assign(document.createElement(name), { className, textContent })
  const look = (chosen) => ["word", ...chosen.map((is, mark) => (is ? `mark-${mark}` : ""))].join(" ")

  const report = () => {
    const marked = (mark) => data.words.flatMap((_, word) => (state.marksOf[word][mark] ? [word] : []))
    setStateValue("positions", Object.fromEntries(data.marks.map(({ name }, mark) => [name, marked(mark)])))
  }
  const paint = (word) => {
    const chosen = state.marksOf[word]
    const names = data.marks.filter((_, mark) => chosen[mark]).map(({ label }) => label)
    buttons[word].className = look(chosen)
    buttons[word].ariaPressed = `${names.length > 0}`
    buttons[word].ariaLabel = [data.words[word], ...names].join(", ")
  }
  const click = (word) => {
    const next = state.marksOf[word].lastIndexOf(true) + 1
    state.marksOf[word] = data.marks.map((_, mark) => mark === next)
    focus(word)
    paint(word)
    report()
  }
  const focus = (word) => {
    if (!buttons[word]) return
    buttons[state.current].tabIndex = -1
    buttons[word].tabIndex = 0
    buttons[word].focus()
    state.current = word
  }

  const line = element("div", "line words")
  line.dir = "auto"
  line.role = "group"
  line.ariaLabel = data.label
  const buttons = data.words.map((text, word) => {
    const button = element("button", "word", text)
    button.type = "button"
    button.tabIndex = word === state.current ? 0 : -1
    button.onclick = () => click(word)
    button.onkeydown = (event) => {
      const arrows = ["ArrowLeft", "ArrowRight"]
      const [backward, forward] = getComputedStyle(line).direction === "rtl" ? arrows.reverse() : arrows
      const to = { [backward]: word - 1, [forward]: word + 1, Home: 0, End: buttons.length - 1 }
      if (!(event.key in to)) return
      event.preventDefault()
      focus(to[event.key])
    }
    line.append(button, " ")
    return button
  })
  buttons.forEach((_, word) => paint(word))

  const legend = element("div", "legend", "Clicks on a word: ")
  data.marks.forEach(({ label }, mark) => {
    legend.append(element("span", look(data.marks.map((_, other) => other === mark)), label), " → ")
  })
  legend.append("not marked")

  const labelled = (label, content) => [element("div", "label", label), content]
  const others = data.others.flatMap(({ label, text }) => {
    const other = element("div", "line", text)
    other.dir = "auto"
    return labelled(label, other)
  })
  const focused = root.contains(root.getRootNode().activeElement)
  root.replaceChildren(...labelled(data.label, line), element("div", "label"), legend, ...others)
  if (focused) focus(state.current)

  root.inert = false
  const submitted = (event) => {
    if (event.composedPath().some(({ dataset }) => dataset?.testid === "stFormSubmitButton")) root.inert = true
  }
  // Called again with new data, sometimes without its cleanup function in between: keep only one listener.
  document.removeEventListener("click", root.submitted)
  document.addEventListener("click", (root.submitted = submitted))
  return () => document.removeEventListener("click", submitted)
}
