// The colours of the arena: a dark background, on which only the important objects are bright.

export const theme = {
  sky: "#0d1321",
  skyEdge: "#090d18",
  grid: "rgba(148, 170, 214, 0.055)",
  star: "rgba(200, 214, 245, 0.5)",

  rock: "#303b52",
  rockEdge: "#5a6985",

  own: "#ffc46b",
  other: "#7fb4e6",
  otherEdge: "#b8d8f5",
  name: "rgba(190, 205, 232, 0.62)",
  flame: "#ff9b54",
  shield: "rgba(126, 212, 255, 0.75)",

  beam: "#ffe9c2",
  beamOther: "#a8d3ff",
  repair: "#7ddf9a",
  shieldPickup: "#7ed4ff",

  server: "#ff6b81",
  interpolated: "#8be28b",
  predicted: "#ffc46b",
} as const;
