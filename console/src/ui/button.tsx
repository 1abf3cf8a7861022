/** Buttons: one main action on a page, other actions, quiet ones, and those that delete. */
import type { ComponentProps } from "react";
import style from "./button.module.css";

interface ButtonProps extends Omit<ComponentProps<"button">, "className"> {
  readonly kind?: "main" | "plain" | "quiet" | "danger";
}

export function Button({ kind = "plain", type = "button", ...rest }: ButtonProps) {
  return <button type={type} className={`${style.button} ${style[kind]}`} {...rest} />;
}
