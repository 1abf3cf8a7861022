/** A dialog that asks what to do with the drafts before the user signs out. */
import { useMutation } from "@tanstack/react-query";
import { Link } from "wouter";
import { signOut } from "../api/client.ts";
import { addNote, noteTarget } from "../api/notes.ts";
import { Button } from "../ui/button.tsx";
import { Modal } from "../ui/modal.tsx";
import { amount } from "../ui/text.ts";
import style from "./draft.module.css";
import { useDrafts } from "./draft.tsx";

/** Characters of a draft that the list shows. */
const SHOWN = 200;

export function SignOutDialog({ onClose }: { onClose: () => void }) {
  const { store, all } = useDrafts();
  const leave = useMutation({
    mutationFn: async (answer: "send" | "keep" | "discard") => {
      if (answer === "discard") store.clear();
      for (const draft of answer === "send" ? all : []) {
        const id = noteTarget(draft);
        if (id === undefined) continue;
        if (draft.text.trim() !== "") await addNote(id, draft.text.trim());
        store.drop(draft.record, [draft.field]);
      }
      await store.written();
      await signOut();
    },
  });
  const others = all.filter((draft) => noteTarget(draft) === undefined).length;
  return (
    <Modal title={`You have ${amount(all.length, "draft")}`} onClose={onClose}>
      <div className={style.body}>
        <ul className={style.list}>
          {all.map(({ record, field, title, path, text }) => (
            <li key={`${record} ${field}`}>
              <Link href={path} onClick={onClose}>
                {title}
              </Link>
              <p className={style.text}>{text.slice(0, SHOWN)}</p>
            </li>
          ))}
        </ul>
        <p>
          If you keep drafts, this browser shows them when you sign in again within 30 days. Other users do not see
          them.
          {others > 0 && others < all.length && " If you send the notes, the other drafts are kept."}
        </p>
        {leave.error !== null && <p role="alert">{leave.error.message}</p>}
        <div className={style.buttons}>
          <Button kind="danger" disabled={leave.isPending} onClick={() => leave.mutate("discard")}>
            Discard the drafts
          </Button>
          <Button disabled={leave.isPending} onClick={() => leave.mutate("keep")}>
            Keep the drafts for me
          </Button>
          {others < all.length && (
            <Button kind="main" disabled={leave.isPending} onClick={() => leave.mutate("send")}>
              Send the notes
            </Button>
          )}
        </div>
      </div>
    </Modal>
  );
}
