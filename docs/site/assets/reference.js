// Applies the reader's choice of light or dark to the reference. mkdocs-material stores that choice in the browser under
// this key. Without a choice the scheme of the system applies. The button changes it for the pages as well.
{
  const key = new URL("..", location).pathname + ".__palette"
  const schemes = [["light", "default"], ["dark", "slate"]].map(([name, scheme]) =>
    ({ media: `(prefers-color-scheme: ${name})`, scheme, primary: "indigo", accent: "indigo" }))
  const system = matchMedia(schemes[1].media)
  const stored = () => {
    try { return JSON.parse(localStorage.getItem(key))?.index } catch { return undefined }
  }
  let index
  const show = () => {
    index = stored() ?? Number(system.matches)
    document.documentElement.dataset.scheme = schemes[index].scheme
  }
  show()
  system.addEventListener("change", show)
  addEventListener("pageshow", show)
  addEventListener("storage", show)
  addEventListener("DOMContentLoaded", () => {
    const button = document.createElement("button")
    button.id = "scheme"
    button.title = "Light or dark"
    button.textContent = "\u25d0"
    button.addEventListener("click", () => {
      localStorage.setItem(key, JSON.stringify({ index: 1 - index, color: schemes[1 - index] }))
      show()
    })
    document.getElementById("titlearea").append(button)
  })
}
