// Browsers refuse a worker whose script is a file on disk, and the search runs in a worker. There, the worker is created
// from the script's text, which scripts/docs_site.py puts in search/worker.js.
if (location.protocol === "file:") {
  const text = new URL("../../search/worker.js", document.currentScript.src);
  document.write(`<script src="${text}"></script>`); // the one way to have it before the page's own scripts
  const NativeWorker = window.Worker;
  window.Worker = function () {
    return new NativeWorker(URL.createObjectURL(new Blob([window.searchWorker], { type: "text/javascript" })));
  };
}
