// Shared by all pages: the data, and the button for light or dark colors.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function setUpTheme() {
  const button = byId("theme");
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Use light colors" : "Use dark colors");
    button.setAttribute("aria-pressed", String(isDark()));
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  button.hidden = false;
  show();
}

setUpTheme();
