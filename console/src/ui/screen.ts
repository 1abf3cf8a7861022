/** The widest screen of a phone, as a media query. The style sheets use the same width. */
export const NARROW = "(max-width: 860px)";
