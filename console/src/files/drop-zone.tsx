/** A field for a CSV file. The user drops a file on it, or chooses one with the browser's dialog. */
import { useState } from "react";
import style from "./files.module.css";

export function DropZone({ onFile }: { onFile: (file: File) => void }) {
  const [isOver, setOver] = useState(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a shortcut for the file input inside
    <div
      className={`${style.drop} stack tight`}
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const [file] = event.dataTransfer.files;
        if (file !== undefined) onFile(file);
      }}
    >
      <label className="row">
        <span>Drop a CSV file here, or choose one.</span>
        <input
          type="file"
          accept=".csv,text/csv"
          onChange={({ target }) => {
            const [file] = target.files ?? [];
            if (file !== undefined) onFile(file);
            target.value = "";
          }}
        />
      </label>
      <small className="muted">
        Up to 200 MB and a million rows. The file is checked first; nothing is written until you import it.
      </small>
    </div>
  );
}
