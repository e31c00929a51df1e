// The texts of a sentence as words. Hovering over a word shades what belongs to it in other lines, as the chosen shading
// says; a click on a word, or on a cell of a chart along these texts, reports the word of its side to Python.
// data: lines [{label, side, words, note}], shadings [{name, over, on, weights}], selected {side: word}, clear.

const COLORS = { default: "0, 114, 178", FUTURE: "230, 159, 0", Pronoun: "213, 94, 0" }

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".texts")
  const state = (root.state ??= { shading: "" })
  const names = [...new Set(data.shadings.map((shading) => shading.name))]
  if (!names.includes(state.shading)) state.shading = names[0] ?? ""

  const report = (words) => {
    const same = Object.entries(words).every(([side, word]) => data.selected[side] === word)
    const kept = Object.entries(data.selected).filter(([side]) => !(side in words))
    setTriggerValue("words", Object.fromEntries([...kept, ...(same ? [] : Object.entries(words))]))
  }

  // Lines of words: a line is one stop of the tab key, arrows go from word to word.
  const spans = []
  const grid = document.createElement("div")
  grid.className = "lines"
  data.lines.forEach((line, number) => {
    const label = document.createElement("div")
    label.className = "label"
    label.textContent = line.label
    const text = document.createElement("div")
    text.className = "line"
    text.lang = ""
    spans[number] = line.words.map((word, index) => {
      const span = document.createElement("span")
      span.textContent = word
      span.className = "word"
      span.onmouseenter = span.onfocus = () => shade(number, index)
      if (line.side) {
        const chosen = data.selected[line.side] === index
        span.role = "button"
        span.ariaPressed = `${chosen}`
        span.tabIndex = index === 0 ? 0 : -1
        span.onclick = () => report({ [line.side]: index })
        span.onkeydown = (event) => {
          const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
          if (by) spans[number][index + by]?.focus()
          else if (event.key === "Enter" || event.key === " ") span.click()
          else return
          event.preventDefault()
        }
      }
      text.append(span, " ")
      return span
    })
    if (line.note) {
      const note = document.createElement("span")
      note.className = "note"
      note.textContent = line.note
      text.append(note)
    }
    text.onmouseleave = () => shade()
    grid.append(label, text)
  })

  const shade = (number, index) => {
    spans.flat().forEach((span) => (span.style.background = ""))
    for (const { name, over, on, weights } of data.shadings) {
      if (name !== state.shading || number === undefined) continue
      if (over !== number && on !== number) continue
      const color = COLORS[name] ?? COLORS.default
      const values = over === number ? (weights[index] ?? []) : weights.map((row) => row[index])
      const others = spans[over === number ? on : over]
      const most = Math.max(1e-9, ...weights.flat())
      values.forEach((value, other) => {
        if (others[other]) others[other].style.background = `rgba(${color}, ${(0.6 * value) / most})`
      })
      spans[number][index].style.background = `rgba(${color}, 0.25)`
    }
  }

  const bar = document.createElement("div")
  bar.className = "bar"
  if (names.length) {
    bar.append("Hover over a word to see: ")
    names.forEach((name) => {
      const button = document.createElement("button")
      button.type = "button"
      button.textContent = name
      button.ariaPressed = `${name === state.shading}`
      button.onclick = () => {
        state.shading = name
        bar.querySelectorAll("button").forEach((other) => (other.ariaPressed = `${other === button}`))
      }
      bar.append(button)
    })
  }
  if (Object.keys(data.selected).length) {
    const clear = document.createElement("button")
    clear.type = "button"
    clear.className = "clear"
    clear.textContent = "Clear selection"
    clear.onclick = () => setTriggerValue("words", {})
    bar.append(clear)
  }
  root.replaceChildren(grid, bar)

  // Charts say in their `meta` which word stands at which position of an axis.
  const clicked = ({ points }, chart) => {
    const axes = chart.layout.meta?.word_axes ?? {}
    const words = {}
    for (const [name, place] of [[points[0].xaxis?._id, points[0].x], [points[0].yaxis?._id, points[0].y]]) {
      const axis = axes[name]
      if (!axis || typeof place !== "number") continue
      const distances = axis.positions.map((position) => Math.abs(position - place))
      const nearest = distances.indexOf(Math.min(...distances))
      if (distances[nearest] <= axis.span && axis.words[nearest] >= 0) words[axis.side] = axis.words[nearest]
    }
    if (Object.keys(words).length) report(words)
  }
  const listen = () => {
    for (const chart of document.querySelectorAll(".js-plotly-plot")) {
      if (!chart.on || chart.reportsWords === clicked) continue
      if (chart.heardWords) chart.removeListener("plotly_click", chart.heardWords)
      chart.reportsWords = clicked
      chart.on("plotly_click", (chart.heardWords = (event) => clicked(event, chart)))
    }
  }
  state.observer?.disconnect()
  state.observer = new MutationObserver(listen)
  state.observer.observe(document.body, { childList: true, subtree: true })
  listen()
  return () => state.observer.disconnect()
}
