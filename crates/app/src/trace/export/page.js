const words = document.getElementById("words");
words.addEventListener("input", () => {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const event of document.querySelectorAll("details")) {
    const text = event.textContent.toLowerCase();
    event.hidden = !wanted.every((word) => text.includes(word));
  }
  for (const session of document.querySelectorAll("section")) {
    session.hidden = !session.querySelector("details:not([hidden])");
  }
});
