// Browsers do not create a Worker for a page without a server. This runs the search's worker in a frame, with the same
// messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.srcdoc = `<script>postMessage = message => parent.postMessage(message, "*")</script>
        <script src="${url}"></script>`
      this.loaded = new Promise(done => frame.addEventListener("load", () => done(frame.contentWindow)))
      addEventListener("message", event => {
        if (event.source === frame.contentWindow) this.dispatchEvent(copyOf(event))
      })
      document.body.append(frame)
    }
    postMessage(data) {
      this.loaded.then(worker => worker.dispatchEvent(copyOf({ data })))
    }
  }
  const copyOf = ({ data }) => new MessageEvent("message", { data })
}
